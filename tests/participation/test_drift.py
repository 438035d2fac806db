"""Participation that is not stationary."""

import numpy as np
import pytest
from tests.participation.examples import z_scores

from turnout.participation import bernoulli, sine_drift, step_drift


def test_sine_follows_its_formula() -> None:
    clients, period = 20_000, 8
    p = np.repeat([0.1, 0.8], clients // 2)
    mask = sine_drift(p, amplitude=0.5, period=period, seed=2).mask(2 * period)
    for t in range(2 * period):
        wave = np.sin(2 * np.pi * t / period)
        for half, mean, swing in ((slice(0, 10_000), 0.1, 0.05), (slice(10_000, None), 0.8, 0.2)):
            now = mean + swing * wave  # 0.8 + 0.4 would pass 1, so that swing is 0.2
            count = mask[t, half].sum()
            if now > 1 - 1e-12:
                assert count == 10_000
            else:
                assert abs(z_scores(count, 10_000, now)) < 4


def test_sine_keeps_the_mean() -> None:
    p = np.array([0.0, 0.05, 0.3, 0.6, 0.97, 1.0])
    for spread in (False, True):
        process = sine_drift(p, amplitude=1.0, period=10, spread=spread, seed=3)
        rounds = 6000
        inner = slice(1, 5)
        counts = process.mask(rounds).sum(axis=0)
        assert np.abs(z_scores(counts[inner], rounds, p[inner])).max() < 4
        assert counts[[0, 5]].tolist() == [0, rounds]
        assert process.rates.tolist() == p.tolist()


def test_spread_phases_level_the_population() -> None:
    def swings(spread: bool) -> float:
        mask = sine_drift(0.5, 5000, amplitude=1.0, period=20, spread=spread, seed=1).mask(20)
        return float(np.ptp(mask.mean(axis=1)))

    assert swings(False) == pytest.approx(1, abs=0.02)
    assert swings(True) < 0.1


def test_spread_moves_each_client_on_its_own_wave() -> None:
    mask = sine_drift(0.5, 300, amplitude=1.0, period=20, spread=True, seed=1).mask(2000)
    by_place = mask.reshape(100, 20, 300).mean(axis=0)
    assert (np.ptp(by_place, axis=0) > 0.8).all()
    peaks = np.bincount(by_place.argmax(axis=0), minlength=20)
    assert (peaks > 0).all()


def test_no_amplitude_is_bernoulli_in_distribution() -> None:
    mask = sine_drift(0.3, 1000, amplitude=0.0, period=4, seed=0).mask(100)
    assert np.abs(z_scores(mask.sum(axis=1), 1000, 0.3)).max() < 4


def test_step_permutes_the_rates_once() -> None:
    p = np.repeat([0.0, 1.0], 50)
    mask = step_drift(p, at=10, seed=5).mask(20)
    assert (mask[:10] == p.astype(bool)).all()
    assert (mask[10:] == mask[10]).all()
    assert mask[10].sum() == 50
    assert 5 < (mask[10] & mask[0]).sum() < 45  # about half change sides


def test_step_has_no_long_run_rates() -> None:
    assert step_drift([0.1, 0.2], at=3).rates is None


def test_step_before_and_after_are_coins() -> None:
    p = np.linspace(0.1, 0.9, 40)
    mask = step_drift(p, at=2000, seed=1).mask(4000)
    assert np.abs(z_scores(mask[:2000].sum(axis=0), 2000, p)).max() < 4
    after = mask[2000:].mean(axis=0)
    assert np.sort(after) == pytest.approx(p, abs=0.05)
    assert not np.array_equal(np.argsort(after), np.argsort(p))


def test_drifts_and_bernoulli_toss_different_coins() -> None:
    plain = bernoulli(0.5, 400, seed=1).mask(20)
    for process in (
        sine_drift(0.5, 400, amplitude=0.0, seed=1),
        step_drift(0.5, 400, at=99, seed=1),
    ):
        assert abs(z_scores((process.mask(20) == plain).sum(), 8000, 0.5)) < 4
