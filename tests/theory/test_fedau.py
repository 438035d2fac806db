"""FedAU's bounds against exact expectations on quadratics, and against our own FedAU."""

from typing import NamedTuple

import numpy as np
import pytest
from tests.theory.moments import (
    Floats,
    Setting,
    at,
    bernoulli_weights,
    client_round,
    draw,
    mean_gradient,
)
from tests.theory.play import play, simulated

import turnout
from turnout import Local, draws
from turnout.algorithms import average_all, fedau, known
from turnout.data import least_squares
from turnout.errors import InputError
from turnout.participation import bernoulli
from turnout.theory.constants import Constants
from turnout.theory.fedau import (
    b_4_4,
    b_5_3,
    b_5_5,
    corollary_4,
    corollary_4_steps,
    weight_statistics,
)
from turnout.theory.objective import theorem_1


class Play(NamedTuple):
    """A setting with step sizes that meet the conditions, often with equality."""

    setting: Setting
    p: Floats
    omega: Floats
    lr: float
    server_lr: float
    steps: int


def _rates(generator: np.random.Generator, clients: int) -> Floats:
    everybody = generator.random() < 0.25
    return np.ones(clients) if everybody else 10 ** generator.uniform(-2, 0, clients)


def _limit(generator: np.random.Generator, limit: float, decades: float = 3) -> float:
    return limit if generator.random() < 0.4 else limit * 10 ** generator.uniform(-decades, 0)


def _constant(generator: np.random.Generator) -> Play:
    setting, steps = draw(generator), int(generator.integers(1, 8))
    clients = len(setting.centres)
    p = _rates(generator, clients)
    omega = 1 / p if generator.random() < 0.4 else 10 ** generator.uniform(-1, 1, clients)
    lr = 10 ** generator.uniform(-5, 0) / (np.sqrt(120) * steps)
    total = (p * omega).sum()
    squares = (p * (omega * clients / total) ** 2).sum() / clients**2
    room = (1 / 8 - 15 * (steps * lr) ** 2) / (27 / 8 * lr * steps * squares)  # η̃
    return Play(setting, p, omega, lr, _limit(generator, room) * clients / total, steps)


def _check_b_4_4(generator: np.random.Generator) -> tuple[float, str]:
    setting, p, omega, lr, server_lr, steps = _constant(generator)
    rounds = int(10 ** generator.uniform(0, 2.5))
    z = theorem_1(p, omega).shares @ setting.centres
    start = at(setting.start)
    weights = bernoulli_weights(p, omega, server_lr)
    step = client_round(setting.curvature, setting.centres, weights, lr, steps, setting.noise)
    constants = Constants(
        smoothness=1,
        gap=start.value(setting.curvature, z),
        noise=setting.sigma,
        divergence=setting.divergence,
    )
    bound = b_4_4(constants, steps, lr, server_lr, rounds, p, omega)
    assert bound.holds
    measured = mean_gradient(step, start, rounds, setting.curvature, z)
    assert measured <= bound.value * (1 + 1e-9)
    return (measured / bound.value if measured else 0.0), bound.dominant


@pytest.mark.parametrize("tries", [150, pytest.param(8000, marks=pytest.mark.slow)])
def test_b_4_4_holds_for_constant_weights(tries: int) -> None:
    generator = draws.generator(44, "fedau of tests")
    found = [_check_b_4_4(generator) for _ in range(tries)]
    assert len({dominant for _, dominant in found}) == 3  # each term had its turn
    assert max(ratio for ratio, _ in found) > 0.1  # the grid reaches within a tenth of the bound


def test_b_4_4_needs_its_condition() -> None:
    # A server step of 100 makes gradient descent explode; the condition says so.
    constants = Constants(smoothness=1, gap=0.5)
    bound = b_4_4(constants, 1, 0.1, 100.0, 50, [1.0])
    step = client_round(
        np.ones(1),
        np.zeros((1, 1)),
        bernoulli_weights(*np.ones((2, 1)), 100.0),
        0.1,
        1,
        np.zeros(1),
    )
    assert not bound.holds
    assert mean_gradient(step, at(np.ones(1)), 50, np.ones(1), np.zeros(1)) > bound.value


def _weights_near(generator: np.random.Generator, p: Floats, small: bool) -> Floats:
    apart = generator.normal(size=len(p))
    if small:  # on or within the ball of B.5.5
        apart *= _limit(generator, 1 / 9) / max(np.sqrt(np.square(apart).mean()), 1e-12)
    else:
        apart *= 10 ** generator.uniform(-2, 0.5)
    if generator.random() < 0.2:
        apart *= 0
    found: Floats = np.abs(1 + apart) / p
    return found


def _check_one_round(generator: np.random.Generator, small: bool) -> float:
    setting, steps = draw(generator), int(generator.integers(1, 7))
    clients = len(setting.centres)
    p = _rates(generator, clients)
    omega = _weights_near(generator, p, small)
    error, square = weight_statistics(p, omega)
    lr = _limit(generator, 1 / (4 * np.sqrt(15) * steps), 2)
    step_limit = min(1 / (4 * steps), clients / (54 * steps * square))
    server_lr = _limit(generator, step_limit, 2) / lr
    now, zero = at(setting.start), np.zeros_like(setting.start)
    weights = bernoulli_weights(p, omega, server_lr)
    after = client_round(setting.curvature, setting.centres, weights, lr, steps, setting.noise)(now)
    measured = now.gradient(setting.curvature, zero)
    constants = Constants(
        smoothness=1,
        gap=now.value(setting.curvature, zero) - after.value(setting.curvature, zero),
        noise=setting.sigma,
        divergence=setting.divergence,
        gradient=np.sqrt(measured),  # the least G there is
    )
    if small and error > 1 / 81:  # |1 + apart| moved it
        return 0.0
    bound = (b_5_5 if small else b_5_3)(constants, clients, steps, lr, server_lr, error, square)
    assert bound.holds
    assert measured <= bound.value + 1e-9 * abs(bound.terms["start, F/(γηIT)"])
    return measured / bound.value if bound.value > 0 else 0.0


@pytest.mark.parametrize("small", [False, True], ids=["b_5_3", "b_5_5"])
@pytest.mark.parametrize("tries", [600, pytest.param(40_000, marks=pytest.mark.slow)])
def test_b_5_3_and_b_5_5_hold_in_one_round_for_any_weights(tries: int, small: bool) -> None:
    generator = draws.generator(5, "fedau of tests", client=int(small))
    assert max(_check_one_round(generator, small) for _ in range(tries)) > 0.05


def _runs(cutoff: int | None, rounds: int, seeds: int) -> tuple[float, float]:
    """Mean ‖∇f‖² of our FedAU, and B.5.3 with the weight errors that it had."""
    p = np.array([0.5, 0.2, 0.1, 0.4])
    curvature = np.array([1.0, 0.3])
    centres = np.array([[1.0, 0.0], [-1.0, 1.0], [2.0, -2.0], [-2.0, 1.0]])
    steps, lr, server_lr, sigma = 3, 0.01, 0.08, 0.5
    start, zero = np.array([4.0, -4.0]), np.zeros(2)
    algorithm = fedau(cutoff=cutoff, server_lr=server_lr, local=Local(lr=lr, steps=steps))
    measured, errors, squares, ends, largest = [], [], [], [], 0.0
    for seed in range(seeds):
        mask = bernoulli(p, seed=seed).mask(rounds)
        path = play(algorithm, np.diag(curvature), centres, mask, start, sigma, seed=seed)
        gradients = np.square(path * curvature).sum(axis=1)
        error, square = weight_statistics(p, turnout.weights(algorithm, mask))
        measured.append(gradients[:-1].mean())
        errors.append(error)
        squares.append(square)
        ends.append(at(path[-1]).value(curvature, zero))
        largest = max(largest, float(gradients.max()))
    constants = Constants(
        smoothness=1,
        gap=at(start).value(curvature, zero) - float(np.mean(ends)),
        noise=sigma,
        divergence=float(np.linalg.norm(centres * curvature, axis=1).max()),
        gradient=np.sqrt(largest),
    )
    bound = b_5_3(constants, 4, steps, lr, server_lr, float(np.mean(errors)), max(squares), rounds)
    assert bound.holds
    return float(np.mean(measured)), bound.value


@pytest.mark.parametrize("cutoff", [5, 50, None])
def test_our_fedau_obeys_b_5_3(cutoff: int | None) -> None:
    measured, bound = _runs(cutoff, rounds=120, seeds=6)
    assert 0 < measured <= bound


@pytest.mark.parametrize("method", ["average_all", "known"])
def test_the_simulator_on_least_squares_obeys_b_4_4(method: str) -> None:
    problem = least_squares(5, 3, 6, noise=1.0, divergence=1.0, convexity=0.2)
    p = np.array([0.9, 0.5, 0.3, 0.3, 0.2])
    omega = np.ones(5) if method == "average_all" else 1 / p
    local = Local(lr=0.01, steps=4, batch_size=1)
    algorithm = average_all(local=local) if method == "average_all" else known(p, local=local)
    shares = theorem_1(p, omega).shares
    start = np.full(3, 3.0)
    gap = problem.value(start, shares) - problem.value(problem.optimum(shares), shares)
    constants = Constants(
        problem.smoothness, gap, noise=problem.noise, divergence=problem.divergence
    )
    bound = b_4_4(constants, 4, 0.01, 1.0, 60, p, omega)
    squares = []
    for seed in range(4):
        path = simulated(algorithm, problem, bernoulli(p, seed=seed), 60, start, seed=seed)[:-1]
        squares.append(np.mean([np.sum((shares @ problem.gradients(x)) ** 2) for x in path]))
    assert bound.holds
    assert np.mean(squares) <= bound.value


def test_b_5_5_is_twice_b_5_3_without_gradients() -> None:
    constants = Constants(smoothness=2, gap=3, noise=1, divergence=2)
    given = (7, 3, 0.01, 0.5, 0.01, 1.5, 40)
    first, second = b_5_3(constants, *given), b_5_5(constants, *given)
    assert second.value == pytest.approx(2 * first.value)
    assert b_5_5(constants, 7, 3, 0.01, 0.5, 0.02, 1.5).conditions[0].holds is False


def test_terms_by_hand() -> None:
    # L = 2, σ² = 3, δ² = 5, I = 2, γ = 0.1, η = 0.5, N = 4, Q = 6.
    constants = Constants(smoothness=2, gap=1, noise=3**0.5, divergence=5**0.5, gradient=1)
    terms = b_5_3(constants, 4, 2, 0.1, 0.5, 0.25, 6.0, rounds=10).terms
    assert list(terms.values()) == pytest.approx(
        [
            8 / (0.05 * 2 * 10),
            12 * 0.25 * (15 * 4 * 2 * 0.01 * 3 + 27 / 8 * 6),
            20 * 0.01 * 4 * 2 * (3 + 60),
            0.05 * 2 / 4 * (25.5 + 27 * 2 * 5) * 6,
        ]
    )
    terms = b_4_4(constants, 2, 0.1, 0.5, 10, [0.5, 0.25], [1, 2]).terms
    # P = 1, α = (2, 4), Σ pα² = 6, η̃ = 0.25.
    assert list(terms.values()) == pytest.approx(
        [
            8 / (0.025 * 2 * 10),
            20 * 0.01 * 4 * 2 * (3 + 12 * 20),
            8 * 0.025 * 2 * (17 / 16 * 3 + 27 / 8 * 2 * 20) * 6 / 4,
        ]
    )


def test_corollary_4_keeps_every_condition() -> None:
    generator = draws.generator(4, "fedau of tests")
    for _ in range(100):
        L, F, sigma, delta, Q = 10 ** generator.uniform(-2, 2, 5)
        clients, steps, rounds = (int(10 ** generator.uniform(0, e)) for e in (3, 1, 4))
        constants = Constants(L, F, sigma, delta)
        lr, server_lr = corollary_4_steps(constants, clients, steps, Q, rounds)
        bound = corollary_4(constants, clients, steps, 0.0, Q, rounds)
        assert bound.holds
        randomness = Q * (steps * delta**2 + sigma**2) * L * steps * rounds
        limits = [
            (F * clients / randomness) ** 0.5,
            1 / (4 * L * steps),
            clients / (54 * L * steps * Q),
        ]
        assert lr.value * server_lr.value == pytest.approx(min(limits))


@pytest.mark.parametrize(
    "call",
    [
        lambda c: b_4_4(c, 1, -0.1, 1.0, 10, [0.5]),
        lambda c: b_4_4(c, 1, 0.1, 1.0, 10, [0.5], [1.0, 1.0]),
        lambda c: b_4_4(c, 1, 0.1, 1.0, 10, [0.0]),
        lambda c: b_5_3(c, 1, 1, 0.1, 1.0, -1.0, 1.0),
        lambda c: corollary_4_steps(Constants(1.0), 1, 1, 1.0, 10),
        lambda c: weight_statistics([0.5, 0.5], [[1.0]]),
    ],
)
def test_bad_input_is_refused(call) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(InputError, match="must be"):
        call(Constants(smoothness=1, gap=1))
