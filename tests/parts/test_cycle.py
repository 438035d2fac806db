"""Cycles of participation: the measure by brute force, what is found, and what is not."""

import numpy as np
import pytest

from turnout.participation import (
    Participation,
    always,
    bernoulli,
    cyclic,
    grouped,
    markov,
    regularised,
    sampled,
    sine_drift,
    step_drift,
    uniform,
)
from turnout.parts import cycle

RATES = np.random.default_rng(0).uniform(0.02, 0.4, size=60)


def watched(process: Participation, rounds: int, longest: int) -> dict:
    state = cycle.begin(longest)
    for came in process.rounds(rounds):
        for part in np.array_split(came.delivered, 3):  # in any number of parts
            state = cycle.note(state, part)
        state = cycle.turn(state)
    return state


@pytest.mark.parametrize("process", [cyclic(RATES, period=9), bernoulli(RATES), regularised(60, 4)])
def test_steadiness_is_that_of_the_formula(process) -> None:
    table = process.mask(200).astype(float) @ cycle.signs(np.arange(60))
    table = table - table.mean(0)
    c = [np.sum(table[k:] * table[: len(table) - k]) / (len(table) - k) for k in range(20)]
    expected = [1 + 2 * sum((1 - k / P) * c[k] / c[0] for k in range(1, P)) for P in range(1, 21)]
    # Means of the two ends of the table differ a little from the mean of all.
    np.testing.assert_allclose(cycle.steadiness(watched(process, 200, 20)), expected, atol=0.35)


def test_steadiness_is_the_variance_of_averages_beside_independent_rounds() -> None:
    """On a long mask, averages of P rounds on end taken one by one."""
    process = cyclic(RATES, period=9)
    table = process.mask(3000).astype(float) @ cycle.signs(np.arange(60))
    rho = cycle.steadiness(watched(process, 3000, 30))
    for P in (2, 5, 9, 13, 18, 25):
        sums = np.cumsum(np.vstack([np.zeros(cycle.WIDTH), table]), axis=0)
        means = (sums[P:] - sums[:-P]) / P
        direct = P * means.var(0).sum() / table.var(0).sum()
        assert rho[P - 1] == pytest.approx(direct, abs=0.05)


@pytest.mark.parametrize(
    ("process", "period"),
    [
        (regularised(3, 3), 3),
        (regularised(40, 8), 8),
        (cyclic(RATES, period=30), 30),
        (sampled(grouped(50, groups=5, length=6, phase=True), 5), 30),
    ],
    ids=["in turn", "regularised", "cyclic", "groups in turn"],
)
def test_cycles_that_are_found(process, period) -> None:
    assert cycle.period(watched(process, 500, 50)) == period


@pytest.mark.parametrize(
    "process",
    [
        always(5),
        uniform(60, 6),
        bernoulli(RATES),
        markov(RATES),
        step_drift(RATES, at=250),
        sine_drift(RATES, amplitude=0.9, period=400),
    ],
    ids=lambda process: process.name,
)
def test_where_there_is_no_cycle_none_is_found(process) -> None:
    state = cycle.begin(50)
    for came in process.rounds(600):
        state = cycle.turn(cycle.note(state, came.delivered))
        assert cycle.period(state) == 0


def test_the_turns_of_a_group_that_takes_turns_are_waited_out() -> None:
    """Within a group every second round is the same; the cycle is all groups'."""
    state = cycle.begin(50)
    process = sampled(grouped(50, groups=5, length=6), 5)
    found = set()
    for came in process.rounds(600):
        state = cycle.turn(cycle.note(state, came.delivered))
        found.add(cycle.period(state))
    assert found == {0, 30}


def test_signs_are_halves_and_each_clients_own() -> None:
    table = cycle.signs(np.arange(4000)).astype(float)
    assert set(np.unique(table)) == {-1, 1}
    assert abs(table.mean(0)).max() < 0.07
    among = table @ table.T / cycle.WIDTH
    np.fill_diagonal(among, 0)
    assert abs(among).max() < 0.8
    assert among.std() == pytest.approx(1 / 8, rel=0.02)
    assert np.array_equal(cycle.signs(np.array([7, 3])), cycle.signs(np.arange(8))[[7, 3]])
