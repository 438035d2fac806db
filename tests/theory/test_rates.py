"""Slopes of measured errors, by regression of logarithms, beside the rates that the papers name."""

import numpy as np
import pytest
from tests.theory.moments import (
    Step,
    at,
    bernoulli_weights,
    client_round,
    mean_gradient,
    server_round,
    uniform_weights,
)

from turnout import draws
from turnout.theory.amplified import corollary_3_3_steps
from turnout.theory.constants import Constants
from turnout.theory.fedau import corollary_4, corollary_4_steps, weight_statistics
from turnout.theory.intervals import corollary_4_cutoff, exact_weight_error
from turnout.theory.safari import (
    corollary_1,
    theorem_4_steps,
    theorem_5_mended,
    theorem_5_steps,
)

CURVATURE = np.array([1.0, 0.6, 0.3])


def slope(x: list[float], y: list[float]) -> float:
    """The exponent b of y ≈ a·x^b, by least squares."""
    return float(np.polyfit(np.log(x), np.log(y), 1)[0])


def _centres(clients: int) -> np.ndarray:
    apart = draws.generator(0, "rates of tests").normal(size=(clients, 3)) * 0.5
    centred: np.ndarray = apart - apart.mean(axis=0)
    return centred


def _known(clients: int, rounds: int) -> tuple[float, float]:
    """Known weights at Corollary 4's steps: (1/T) Σ E‖∇f‖², exactly, and the bound."""
    p = np.linspace(0.2, 0.8, clients)
    centres, noise, steps = _centres(clients), np.full(3, 3.0), 2
    start, zero = np.full(3, 2.0), np.zeros(3)
    error, square = weight_statistics(p, 1 / p)
    constants = Constants(
        smoothness=1,
        gap=at(start).value(CURVATURE, zero),
        noise=3.0,
        divergence=float(np.linalg.norm(centres * CURVATURE, axis=1).max()),
        gradient=10.0,
    )
    lr, server_lr = corollary_4_steps(constants, clients, steps, square, rounds)
    weights = bernoulli_weights(p, 1 / p, server_lr.value)
    step = client_round(CURVATURE, centres, weights, lr.value, steps, noise)
    bound = corollary_4(constants, clients, steps, error, square, rounds)
    assert bound.holds
    return mean_gradient(step, at(start), rounds, CURVATURE, zero), bound.value


def test_corollary_4_falls_as_one_over_the_root_of_rounds() -> None:
    rounds = [500, 1000, 2000, 4000, 8000]
    found = [_known(8, T) for T in rounds]
    assert slope(rounds, [measured for measured, _ in found]) == pytest.approx(-0.5, abs=0.1)
    assert all(measured < bound for measured, bound in found)


def test_corollary_4_falls_as_one_over_the_root_of_clients() -> None:
    clients = [2, 4, 8, 16, 32]
    found = [_known(N, 6000) for N in clients]
    assert slope(clients, [measured for measured, _ in found]) == pytest.approx(-0.5, abs=0.1)
    assert all(measured < bound for measured, bound in found)


def test_theorem_3_falls_as_one_over_rounds_up_to_the_logarithms() -> None:
    rounds, p = [500, 1000, 2000, 4000], [0.1, 0.4]
    errors = []
    for T in rounds:
        cutoff = int(corollary_4_cutoff(p, T).value)
        errors.append(float(np.mean([exact_weight_error(q, cutoff, T - 1).mean() for q in p])))
    without_log = [error / np.log(T) for T, error in zip(rounds, errors, strict=True)]
    assert slope(rounds, without_log) == pytest.approx(-1, abs=0.12)


def _amplified(per_round: int, rounds: int) -> float:
    """Generalized FedAvg, S of 64 clients drawn at random, at Corollary 3.3's steps."""
    clients, steps, period = 64, 2, 4
    centres, noise = _centres(clients), np.full(3, 0.5)
    start, zero = np.full(3, 0.5), np.zeros(3)
    constants = Constants(smoothness=1, gap=at(start).value(CURVATURE, zero), noise=1.22)
    rho = 1 / per_round**0.5
    lr, factor = corollary_3_3_steps(constants, steps, rounds, period, rho)
    weights = uniform_weights(clients, clients, per_round)
    window = client_round(CURVATURE, centres, weights, lr.value, steps, noise).times(period)
    step = window.amplified(factor.value)
    return mean_gradient(step, at(start), rounds // period, CURVATURE, zero)


def test_generalized_fedavg_speeds_up_linearly_in_participants() -> None:
    participants = [1, 2, 4, 8, 16]
    errors = [_amplified(S, 200_000 // 4) for S in participants]
    assert slope(participants, errors) == pytest.approx(-0.5, abs=0.1)


def test_generalized_fedavg_falls_as_one_over_the_root_of_rounds() -> None:
    rounds = [2000, 8000, 32_000]
    assert slope(rounds, [_amplified(4, T) for T in rounds]) == pytest.approx(-0.5, abs=0.1)


def _safari(lr: float, assistance_lr: float, q: float, come: int, steps: int) -> Step:
    centres, noise = _centres(8), np.full(3, 0.5)
    weights = uniform_weights(8, come, 4)
    server = server_round(CURVATURE, np.zeros(3), assistance_lr, np.full(3, 0.5))
    return client_round(CURVATURE, centres, weights, lr, steps, noise).or_with(q, server)


def _constants(come: int) -> Constants:
    centres = _centres(8)
    here = centres[:come].mean(axis=0) * (come < 8)
    return Constants(
        smoothness=1,
        gap=at(np.full(3, 2.0)).value(CURVATURE, np.zeros(3)),
        noise=1.5**0.5,
        divergence=float(np.linalg.norm(centres * CURVATURE, axis=1).max()),
        convexity=0.3,
        server_noise=1.5**0.5,
        bias=float(np.linalg.norm(here * CURVATURE)),
    )


def _distance(rounds: int, come: int, q: float = 0.8) -> float:
    constants, steps = _constants(come), 3
    server, client = theorem_5_steps(constants, steps, rounds)
    step = _safari(client.value, server.value, q, come, steps)
    measured = step.times(rounds)(at(np.full(3, 2.0))).distance(np.zeros(3))
    bound = theorem_5_mended(constants, q, steps, 4, server.value, rounds, 12**0.5)
    assert bound.holds
    assert measured <= bound.value
    return measured


def test_theorem_5_falls_as_one_over_rounds_where_everybody_comes() -> None:
    rounds = [2**j for j in range(12, 22, 2)]
    errors = [_distance(R, come=8) for R in rounds]
    assert slope(rounds, errors) < -0.85
    without_log = [error / np.log(R) for R, error in zip(rounds, errors, strict=True)]
    assert slope(rounds, without_log) == pytest.approx(-1, abs=0.05)


def test_theorem_5_stops_falling_where_some_never_come() -> None:
    errors = {q: [_distance(2**j, come=6, q=q) for j in (20, 24, 28)] for q in (0.2, 0.8)}
    for q, found in errors.items():
        assert found[-1] > 0.9 * found[0], q
    assert errors[0.2][-1] < 0.3 * errors[0.8][-1]  # only a smaller q helps


def test_corollary_1_falls_as_one_over_the_root_of_rounds() -> None:
    rounds, errors = [2000, 4000, 8000, 16_000], []
    for R in rounds:
        server, client = theorem_4_steps(_constants(8), 3, R)
        step = _safari(client.value, server.value, 0.8, 8, 3)
        errors.append(mean_gradient(step, at(np.full(3, 2.0)), R, CURVATURE, np.zeros(3)))
        assert errors[-1] <= corollary_1(_constants(8), 0.8, 3, 4, R).value
    assert slope(rounds, errors) == pytest.approx(-0.5, abs=0.1)
