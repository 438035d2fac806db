"""m of those available, by permutations: everyone once before anyone twice."""

import numpy as np
import pytest
from hypothesis import given as drawn
from hypothesis import strategies as st
from tests.participation.examples import z_scores

from turnout.draws import generator
from turnout.participation import always, bernoulli, given, grouped, lossy, sampled
from turnout.participation.sampled import take


def test_the_setting_of_generalized_fedavg_is_regular() -> None:
    """50 of 250 available for 100 rounds, 10 a round: each comes 20 times in every cycle."""
    process = sampled(grouped(250, groups=5, length=100), 10, seed=3)
    mask = process.mask(1000)
    assert (mask.sum(axis=1) == 10).all()
    assert (mask[:500].sum(axis=0) == 20).all()
    assert (mask[500:].sum(axis=0) == 20).all()
    passes = mask.reshape(200, 5, 250).sum(axis=1)  # five rounds use a group up
    assert passes.max() == 1
    assert process.rates == pytest.approx(np.full(250, 0.04))


def test_passes_differ() -> None:
    mask = sampled(always(20), 4, seed=0).mask(50)
    passes = {mask[k : k + 5].tobytes() for k in range(0, 50, 5)}
    assert len(passes) == 10


@drawn(clients=st.integers(1, 15), data=st.data(), seed=st.integers(0, 10_000))
def test_everyone_once_before_anyone_twice(clients: int, data: st.DataObject, seed: int) -> None:
    per_round = data.draw(st.integers(1, clients))
    mask = sampled(always(clients), per_round, seed).mask(40)
    assert (mask.sum(axis=1) == per_round).all()
    counts = mask.cumsum(axis=0)
    # Where a pass ends within a round, that round's clients may be one ahead of the last of it.
    assert (counts.max(axis=1) - counts.min(axis=1)).max() <= (1 if clients % per_round == 0 else 2)
    ends = [t for t in range(40) if (t + 1) * per_round % clients == 0]
    for t in ends:
        assert counts[t].tolist() == [(t + 1) * per_round // clients] * clients


@drawn(
    available=st.sets(st.integers(0, 30)),
    left=st.integers(0, 30),
    most=st.integers(1, 12),
    seed=st.integers(0, 10_000),
)
def test_take(available: set[int], left: int, most: int, seed: int) -> None:
    draws = generator(seed, "test")
    here = np.array(sorted(available), dtype=np.int64)
    queue = draws.permutation(here)[:left]
    cohort, then = take(queue, here, most, draws)
    assert len(cohort) == min(most, len(here))
    assert (np.diff(cohort) > 0).all()
    assert set(cohort.tolist()) <= available
    if len(queue) >= len(cohort):
        assert cohort.tolist() == sorted(queue[: len(cohort)].tolist())
        assert then.tolist() == queue[len(cohort) :].tolist()
    else:  # the old pass is used up, and the new one owes everybody else a turn
        ahead = set(cohort.tolist()) - set(queue.tolist())
        assert set(queue.tolist()) <= set(cohort.tolist())
        assert sorted(then.tolist()) == sorted(available - ahead)


def test_a_change_of_availability_starts_a_new_pass() -> None:
    # Clients 0–3 for one round, then 2–5 for two, then 0–3 again for two; two clients a round.
    early, late = [1, 1, 1, 1, 0, 0], [0, 0, 1, 1, 1, 1]
    for seed in range(20):
        mask = sampled(given([early, late, late, early, early]), 2, seed).mask(5)
        assert (mask[1] ^ mask[2]).tolist() == [bool(x) for x in late]
        assert (mask[3] ^ mask[4]).tolist() == [bool(x) for x in early]


def test_availability_that_always_changes_gives_a_simple_sample() -> None:
    process = sampled(bernoulli(0.5, 8, seed=1), 2, seed=1)
    mask, available = process.mask(6000), bernoulli(0.5, 8, seed=1).mask(6000)
    assert not (mask & ~available).any()
    assert np.array_equal(mask.sum(axis=1), np.minimum(2, available.sum(axis=1)))
    four = available.sum(axis=1) == 4
    chosen = mask[four & available[:, 0], 0]
    assert abs(z_scores(chosen.sum(), len(chosen), 0.5)) < 4


def test_all_come_where_fewer_are_there_and_nobody_where_none() -> None:
    mask = sampled(given([[1, 1, 0, 0], [0, 0, 0, 0], [1, 1, 1, 1]]), 3).mask(3)
    assert mask.sum(axis=1).tolist() == [2, 0, 3]


def test_rates_are_those_of_the_average_seed() -> None:
    mask = given([[1, 1, 1, 1, 1], [1, 1, 1, 1, 1], [1, 1, 0, 0, 0], [0, 0, 0, 1, 1]], repeat=True)
    expected = sampled(mask, 2).rates
    assert expected == pytest.approx([0.45, 0.45, 0.2, 0.45, 0.45])
    seen = np.mean([sampled(mask, 2, seed).mask(8).mean(axis=0) for seed in range(1500)], axis=0)
    assert seen == pytest.approx(expected, abs=0.012)


def test_lost_updates_count_as_used() -> None:
    process = sampled(lossy(always(6), 1.0), 2, seed=1)
    assert not process.mask(3).any()
    assert (process.mask(3, cohort=True).sum(axis=0) == 1).all()
