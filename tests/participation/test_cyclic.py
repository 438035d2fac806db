"""The cyclic pattern of FedAU: one stretch a cycle, at a time of the client's own."""

import numpy as np
import pytest
from tests.participation.examples import z_scores

from turnout.participation import cyclic


@pytest.mark.parametrize("period", [1, 2, 100, 127, 128, 129, 200, 255])
def test_one_stretch_of_the_right_length_each_cycle(period: int) -> None:
    p = np.array([0.0, 0.001, 0.02, 0.1, 0.5, 0.5, 0.5, 0.99, 1.0])
    mask = cyclic(p, period=period, seed=3).mask(3 * period)
    length = [max(1, round(period * float(each))) for each in p]
    for k in range(3):
        assert mask[k * period : (k + 1) * period].sum(axis=0).tolist() == length
    starts = (mask[:period] & ~np.roll(mask[:period], 1, axis=0)).sum(axis=0)
    assert starts.tolist() == [int(each < period) for each in length]


@pytest.mark.parametrize("period", [32_767, 32_768, 40_000])
def test_long_periods_do_not_overflow(period: int) -> None:
    p = [0.001, 0.5, 0.999] * 8  # at eight offsets each
    process = cyclic(p, period=period, seed=1)
    came = np.zeros((2, len(p)))
    for t in range(2 * period):
        came[t // period, process.step({}, t)[0].delivered] += 1
    expected = [max(1, round(period * each)) for each in p]
    assert came.tolist() == [expected, expected]


def test_rates_are_those_of_the_rounded_lengths() -> None:
    process = cyclic([0.0, 0.004, 0.016, 0.1], seed=1)
    assert process.rates.tolist() == [0.01, 0.01, 0.02, 0.1]


def test_offsets_are_uniform_and_unrelated_to_p() -> None:
    clients, period = 40_000, 100
    first = cyclic(0.01, clients, seed=6).mask(period).argmax(axis=0)
    counts = np.bincount(first, minlength=period)
    z = z_scores(counts, clients, 1 / period)
    assert np.abs(z).max() < 4.5
    assert abs((z**2).sum() - period) < 5 * np.sqrt(2 * period)
    same = cyclic(np.linspace(0, 0.01, clients), seed=6).mask(period).argmax(axis=0)
    assert np.array_equal(first, same)
