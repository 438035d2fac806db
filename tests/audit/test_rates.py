"""Rates, their intervals, and what is said of the federation."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from tests.audit.processes import rates as some_rates

from turnout.audit.gaps import gaps
from turnout.audit.history import from_mask, from_pairs, to_log
from turnout.audit.rates import federation, rates
from turnout.participation import bernoulli, cyclic, markov

masks = arrays.arrays(bool, st.tuples(st.integers(1, 30), st.integers(1, 6)))


@pytest.mark.parametrize("make", [bernoulli, markov, cyclic])
@pytest.mark.parametrize("rounds", [300, 1500])
def test_intervals_cover_the_rate(make, rounds: int) -> None:
    """95 % of 600 clients; a standard deviation is 0.9 %. Those on schedule have wider ones."""
    process = make(some_rates(600, rounds), seed=rounds)
    found = rates(from_mask(process.mask(rounds)))
    assert process.rates is not None
    covered = ((found.low <= process.rates) & (process.rates <= found.high)).mean()
    assert covered >= 0.92
    if make is bernoulli:
        assert covered <= 0.98


@given(masks)
def test_against_the_mask(mask: np.ndarray) -> None:
    history, rounds = from_mask(mask), len(mask)
    assert (to_log(history).mask() == mask).all()
    assert (mask == history.dense(np.arange(history.clients)).T).all()
    found, spread = rates(history), gaps(history)
    assert (found.rate == mask.mean(axis=0)).all()
    assert ((found.low <= found.rate) & (found.rate <= found.high)).all()
    for n, column in enumerate(mask.T):
        when = np.flatnonzero(column)
        absent = np.diff(np.concatenate([[-1], when, [rounds]])) - 1
        assert spread.longest_absence[n] == (absent.max() if len(when) else rounds)
        if len(when) < 2:
            assert np.isnan([spread.mean[n], spread.median[n], spread.longest[n]]).all()
            continue
        steps = np.diff(when)
        assert spread.mean[n] == pytest.approx(steps.mean())
        assert spread.longest[n] == steps.max()
        assert spread.p90[n] == np.quantile(steps, 0.9, method="inverted_cdf")


@given(masks)
def test_federation(mask: np.ndarray) -> None:
    found = federation(from_mask(mask))
    k, came = mask.sum(axis=0), mask.sum(axis=1)
    assert found.never_seen == (k == 0).sum()
    assert found.once_seen == (k == 1).sum()
    assert found.empty_rounds == (came == 0).sum()
    if k.sum():
        apart = np.abs(k[:, None] - k[None]).mean() / 2 / k.mean()
        assert found.gini == pytest.approx(apart, abs=1e-9)
        assert found.effective_per_round == pytest.approx(1 / (1 / came[came > 0]).mean())
        assert found.effective_clients == pytest.approx(k.sum() ** 2 / (k**2).sum())


def test_pairs_come_in_any_order_and_twice() -> None:
    history = from_pairs([2, 0, 2, 2], [3, 1, 0, 3], clients=4, rounds=5)
    assert [history.of(n).tolist() for n in range(4)] == [[1], [], [0, 3], []]
