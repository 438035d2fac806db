"""Generalized FedAvg: the split of divergence, kinds of participation, settings, and their orders."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from tests.theory.moments import Floats, Step, Weights, at, client_round
from tests.theory.play import play, simulated

from turnout import Local, draws
from turnout.algorithms import amplified, fedavg
from turnout.data import quadratics
from turnout.errors import InputError
from turnout.participation import given as given_mask
from turnout.participation import grouped, uniform
from turnout.theory.amplified import (
    corollary_3_2,
    corollary_3_2_steps,
    corollary_3_3,
    corollary_3_3_steps,
    divergence_split,
    round_weights,
    windows,
)
from turnout.theory.classes import (
    CLASSES,
    best_period,
    imbalance,
    period_of,
    window_divergence,
)
from turnout.theory.constants import Constants

masks = arrays(bool, st.tuples(st.integers(1, 12), st.integers(1, 5)))


@given(mask=masks, seed=st.integers(0, 99))
def test_the_three_parts_make_up_the_whole(mask: np.ndarray, seed: int) -> None:
    if not mask.any():
        return
    rounds, clients = mask.shape
    gradients = np.random.default_rng(seed).normal(size=(clients, 3))
    split = divergence_split(mask, gradients, period=rounds)
    lengths = np.square(gradients - gradients.mean(axis=0)).sum(axis=1)
    whole = (round_weights(mask) @ lengths).mean()
    assert split.among**2 + split.sampling**2 + split.window**2 == pytest.approx(whole)
    assert split.rho**2 == pytest.approx(1 / min(n for n in mask.sum(axis=1) if n))
    assert split.windows == 1
    delta = np.sqrt(lengths.max())
    assert split.window <= 2 * delta * imbalance(mask, rounds).max() + 1e-12


@given(mask=masks, period=st.integers(1, 12))
def test_imbalance_is_that_of_the_windows_one_by_one(mask: np.ndarray, period: int) -> None:
    if period > len(mask):
        return
    slow = [0.5 * np.abs(q.mean(axis=0) - 1 / q.shape[1]).sum() for q in windows(mask, period)]
    np.testing.assert_allclose(imbalance(mask, period), slow, atol=1e-12)


def test_each_window_counts_and_the_worst_is_told() -> None:
    mask = [[1, 0], [0, 1], [1, 0], [1, 0], [1, 1]]  # the last round is no whole window
    split = divergence_split(mask, [[3.0], [-1.0]], period=2)
    assert (split.window, split.sampling, split.among, split.windows) == (2.0, 2.0, 0.0, 2)


def _orthogonal(clients: int) -> Floats:
    """Gradients of which each lies δ = 1 from the mean, so that bounds in δ are equalities."""
    apart = np.eye(clients) - 1 / clients
    scaled: Floats = apart / np.sqrt(1 - 1 / clients)
    return scaled


def _lazy(clients: int, per_round: int, keep: float, rounds: int) -> np.ndarray:
    """A cohort stays with probability `keep`, else it is drawn anew: correlation keep^k."""
    generator = draws.generator(1, "lazy of tests")
    mask = np.zeros((rounds, clients), dtype=bool)
    for t in range(rounds):
        if t and generator.random() < keep:
            mask[t] = mask[t - 1]
        else:
            mask[t, generator.permutation(clients)[:per_round]] = True
    return mask


@pytest.mark.parametrize("period", [1, 4, 20])
@pytest.mark.parametrize("keep", [0.0, 0.7])
def test_delta_of_independent_and_mixing_participation(keep: float, period: int) -> None:
    clients, per_round, rounds = 10, 3, 12_000
    mask = (
        _lazy(clients, per_round, keep, rounds)
        if keep
        else uniform(clients, per_round, seed=1).mask(rounds)
    )
    gradients = _orthogonal(clients)
    squares = [
        np.square(q.mean(axis=0) @ gradients - gradients.mean(axis=0)).sum()
        for q in windows(mask, period)
    ]
    kind = "mixing" if keep else "independent"
    expected = window_divergence(kind, 1.0, clients, per_round, period, correlation=keep).value
    assert np.mean(squares) == pytest.approx(expected, rel=0.1)


def test_delta_of_regularised_participation() -> None:
    mask = np.tile(np.repeat(np.eye(6), 2, axis=0), (10, 1))  # each of six clients two rounds
    gradients = np.random.default_rng(0).normal(size=(6, 2))
    delta = np.linalg.norm(gradients - gradients.mean(axis=0), axis=1).max()
    for period in (1, 5, 12, 17, 24, 30):
        bound = window_divergence("regularised", delta, 6, 1, period, cycle=12).value
        assert divergence_split(mask, gradients, period).window ** 2 <= bound + 1e-12
    assert imbalance(mask, 12).max() < 1e-12
    assert imbalance(mask, 11).max() > 0.01


def test_delta_of_ergodic_participation_comes_from_a_mask() -> None:
    mask = uniform(8, 2, seed=0).mask(512)
    gradients = np.random.default_rng(0).normal(size=(8, 2))
    delta = np.linalg.norm(gradients - gradients.mean(axis=0), axis=1).max()
    for period in (1, 8, 64):
        worst = float(imbalance(mask, period).max())
        bound = window_divergence("ergodic", delta, 8, 2, period, imbalance=worst).value
        assert divergence_split(mask, gradients, period).window ** 2 <= bound
    with pytest.raises(InputError, match="imbalance"):
        window_divergence("ergodic", delta, 8, 2, 4)


def test_a_period_is_found_in_a_mask() -> None:
    constants = Constants(smoothness=1, gap=1, divergence=1)
    mask = grouped(20, groups=5, length=4).mask(400)
    assert period_of(mask, constants, 400, candidates=[1, 4, 10, 20, 25, 40]).value == 20
    assert best_period(constants, 1000, per_window=0.0, cycle=20).value == 20
    assert best_period(constants, 30, per_window=0.0, cycle=20).value == 15
    assert best_period(constants, 10_000, per_window=0.0).value == 1


def test_settings_by_hand() -> None:
    constants = Constants(smoothness=2, gap=8, noise=3)
    lr, factor = corollary_3_2_steps(constants, local_steps=4, rounds=400, period=5, rho=0.5)
    assert lr.value == pytest.approx(1 / (12 * 2 * 4 * 5 * 20))
    assert factor.value == pytest.approx(min(12 * 5 * 8 / 1.5, 240))
    assert corollary_3_3_steps(constants, 4, 400, 5, 0.5)[1].value == pytest.approx(960)
    bound = corollary_3_2(constants, 4, 400, 5, 0.5, window=0.1, sampling=2, among=3)
    assert list(bound.terms.values()) == pytest.approx(
        [1.5 * (16 / 1600) ** 0.5, 80 / 400, 0.01, (4 + 9 / 20) / 400, 9 / (25 * 400)]
    )
    other = corollary_3_3(constants, 4, 400, 5, 0.5, window=0.1, sampling=2, among=3)
    assert next(iter(other.terms.values())) == pytest.approx(10 * 0.5 * 0.1)
    assert other.conditions[0].left == pytest.approx((8 / 3200) ** 0.5 / 0.5)
    assert other.conditions[0].right == pytest.approx(1 / 40)


def _cycle(curvature: Floats, centres: Floats, lr: float, steps: int, noise: Floats) -> Step:
    """One client a round in turn: a cycle of N rounds as one step."""
    whole = None
    for n in range(len(centres)):
        one = np.eye(len(centres))[n]
        step = client_round(curvature, centres, Weights(one, np.outer(one, one)), lr, steps, noise)
        whole = step if whole is None else whole.then(step)
    assert whole is not None
    return whole


def _order(generator: np.random.Generator) -> float:
    """Measured mean of ‖∇f‖² at windows' starts over Corollary 3.2's order."""
    clients, dim = int(generator.integers(2, 9)), 2
    steps, windows_ = int(generator.integers(1, 6)), int(10 ** generator.uniform(0.4, 3))
    rounds = windows_ * clients
    centres = generator.normal(size=(clients, dim)) * 10 ** generator.uniform(-2, 1)
    centres -= centres.mean(axis=0)
    curvature = np.array([1.0, generator.uniform(0.05, 1)])
    noise = np.full(dim, 10 ** generator.uniform(-2, 2))
    start, zero = generator.normal(size=dim) * 10 ** generator.uniform(-1, 1), np.zeros(dim)
    constants = Constants(
        smoothness=1,
        gap=at(start).value(curvature, zero),
        noise=float(np.sqrt(noise.sum())),
        divergence=float(np.linalg.norm(centres * curvature, axis=1).max()),
    )
    lr, factor = corollary_3_2_steps(constants, steps, rounds, clients, rho=1.0)
    cycle = _cycle(curvature, centres, lr.value, steps, noise).amplified(factor.value)
    now, total = at(start), 0.0
    for _ in range(windows_):
        total += now.gradient(curvature, zero) / windows_
        now = cycle(now)
    bound = corollary_3_2(constants, steps, rounds, clients, 1.0, window=0.0)
    assert bound.holds
    return total / bound.value


@pytest.mark.parametrize("tries", [60, pytest.param(2000, marks=pytest.mark.slow)])
def test_regularised_participation_has_the_order_of_corollary_3_2(tries: int) -> None:
    generator = draws.generator(2, "amplified of tests")
    ratios = [_order(generator) for _ in range(tries)]
    assert max(ratios) < 4  # the constant that the order hides, on quadratics
    assert max(ratios) > 0.5


def test_amplification_goes_where_neither_step_size_alone_goes() -> None:
    # The motivating example: three clients in turn. Our own rounds, and the simulator's.
    centres = np.array([[2.0, 0.0], [-1.0, 3.0], [-1.0, -3.0]])
    mask = np.tile(np.eye(3, dtype=bool), (40, 1))
    start = np.array([10.0, -10.0])
    ends = {}
    for name, lr, factor in (("large", 0.5, 1.0), ("small", 0.01, 1.0), ("amplified", 0.01, 10.0)):
        algorithm = amplified(3, factor, inner=fedavg(local=Local(lr=lr, steps=1, batch_size=None)))
        path = play(algorithm, np.eye(2), centres, mask, start)
        process = given_mask(mask)
        walked = simulated(algorithm, quadratics(centres), process, len(mask), start)
        np.testing.assert_allclose(walked, path, atol=1e-12)
        ends[name] = float(np.linalg.norm(path[-1]))
    assert ends["amplified"] < 0.1 < 1 < min(ends["large"], ends["small"])


def test_every_class_is_described_and_calculated() -> None:
    for kind in CLASSES:
        found = window_divergence(kind, 1.0, 10, 2, 5, cycle=5, correlation=0.5, imbalance=0.1)
        assert found.value >= 0
    with pytest.raises(InputError, match="did you mean 'mixing'"):
        window_divergence("mixin", 1.0, 10, 2, 5)


@pytest.mark.parametrize(
    "call",
    [
        lambda: divergence_split([[1, 0]], [[1.0]], 1),
        lambda: divergence_split([[0, 0]], [[1.0], [2.0]], 1),
        lambda: divergence_split([1, 0], [[1.0], [2.0]], 1),
        lambda: imbalance([[1, 0]], 2),
        lambda: imbalance([[1, 0]], 0),
        lambda: window_divergence("independent", 1.0, 3, 5, 2),
        lambda: window_divergence("mixing", 1.0, 3, 2, 2, correlation=1.0),
        lambda: window_divergence("regularised", 1.0, 5, 2, 2),
        lambda: corollary_3_2_steps(Constants(smoothness=1, gap=1), 1, 10, 6, 1.0),
        lambda: period_of([[1, 0]], Constants(smoothness=1, gap=1), 10),
    ],
)
def test_bad_input_is_refused(call) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(InputError, match="must be"):
        call()
