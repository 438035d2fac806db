"""Groups in turn, and every client once a cycle."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnout.participation import grouped, regularised


def test_the_setting_of_generalized_fedavg() -> None:
    process = grouped(250, groups=5, length=100)
    mask = process.mask(1000)
    for t in (0, 99, 100, 250, 499, 500, 999):
        group = t // 100 % 5
        assert np.flatnonzero(mask[t]).tolist() == list(range(50 * group, 50 * group + 50))
    assert process.rates.tolist() == [0.2] * 250


def test_three_clients_one_a_round_in_turn() -> None:
    """The motivating example: P = 3."""
    rounds = [came.delivered.tolist() for came in grouped(3, groups=3, length=1).rounds(7)]
    assert rounds == [[0], [1], [2], [0], [1], [2], [0]]


def test_a_phase_only_shifts_the_cycle() -> None:
    plain = grouped(10, groups=3, length=7).mask(42)
    shifts = set()
    for seed in range(60):
        mask = grouped(10, groups=3, length=7, phase=True, seed=seed).mask(21)
        fits = [s for s in range(21) if np.array_equal(plain[s : s + 21], mask)]
        assert len(fits) == 1
        shifts.update(fits)
    assert len(shifts) > 15  # of 21, in 60 draws: the phase is anywhere, also within a turn


def test_groups_by_label() -> None:
    mask = grouped(5, groups=[2, 0, 1, 0, 2], length=1).mask(3)
    assert [np.flatnonzero(row).tolist() for row in mask] == [[1, 3], [2], [0, 4]]


def test_uneven_blocks_differ_by_one() -> None:
    sizes = grouped(11, groups=4, length=1).mask(4).sum(axis=1)
    assert sizes.sum() == 11
    assert sizes.max() - sizes.min() == 1


@given(
    clients=st.integers(1, 30),
    period=st.integers(1, 40),
    reshuffle=st.booleans(),
    seed=st.integers(0, 1000),
)
def test_regularised_is_once_a_cycle_for_everyone(
    clients: int, period: int, reshuffle: bool, seed: int
) -> None:
    mask = regularised(clients, period, reshuffle, seed).mask(3 * period)
    for k in range(3):
        cycle = mask[k * period : (k + 1) * period]
        assert (cycle.sum(axis=0) == 1).all()
        assert cycle.sum(axis=1).max() - cycle.sum(axis=1).min() <= 1


@pytest.mark.parametrize("reshuffle", [False, True])
def test_the_order_is_random_and_new_when_asked(reshuffle: bool) -> None:
    mask = regularised(40, 10, reshuffle, seed=2).mask(30)
    cycles = [mask[:10], mask[10:20], mask[20:]]
    assert not np.array_equal(cycles[0], grouped(40, groups=10, length=1).mask(10))
    assert np.array_equal(cycles[0], cycles[1]) is not reshuffle
    assert np.array_equal(cycles[1], cycles[2]) is not reshuffle
