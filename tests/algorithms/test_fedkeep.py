"""FedKeep: against its formula, the methods that it is at its corners, and its unbiasedness."""

import numpy as np
import pytest
import torch
from tests.algorithms.naive import Intervals, moved, trace
from tests.conformance.worlds import HALF, walk

from turnout.algorithms import amplified, fedau, fedkeep, fedstale, mifa, safari
from turnout.costs import costs
from turnout.errors import InputError
from turnout.round import start, weights


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("cutoff", [3, 1000])
def test_its_formula_on_random_traces(seed, cutoff) -> None:
    z, mask = trace(seed)
    N, beta, eta = len(z), 0.4, 0.7
    estimate = Intervals(N, cutoff)
    x, h, mean, expected = 3.0, np.zeros(N), 0.0, []
    for came in mask:
        deltas = np.array([moved(x, each, 0.5, 1) for each in z])
        x += eta * (beta * mean + np.sum((estimate.weight * (deltas - beta * h))[came]) / N)
        mean += np.sum((deltas - h)[came]) / N  # from what clients upload, and nothing else
        h[came] = deltas[came]
        estimate.after(came)
        expected.append(x)
    run = walk(fedkeep(beta, cutoff, server_lr=eta, local=HALF), z, mask, 3.0)
    np.testing.assert_allclose(run, expected, rtol=1e-10)


@pytest.mark.parametrize("shrink", [0.5, 3.0])
def test_weights_are_drawn_towards_everybodys_mean(shrink) -> None:
    _, mask = trace(5)
    N = mask.shape[1]
    rounds, intervals, opened = np.zeros(N), np.zeros(N), np.zeros(N)
    found = weights(fedkeep(cutoff=None, shrink=shrink), mask)
    for t, came in enumerate(mask):
        if intervals.sum():
            common = rounds.sum() / intervals.sum()
            expected = (rounds + shrink * common) / (intervals + shrink)
        else:
            expected = np.ones(N)
        np.testing.assert_allclose(found[t], expected, rtol=1e-12)
        rounds[came] += t + 1 - opened[came]
        intervals[came] += 1
        opened[came] = t + 1


def test_without_shrinkage_nothing_is_shared_and_clients_may_weigh_themselves() -> None:
    assert fedkeep().weight.alone
    assert not fedkeep(shrink=1.0).weight.alone
    assert "everybody" not in fedkeep().weight.init(3)


@pytest.mark.parametrize(
    ("corner", "other"),
    [
        (fedkeep(0.0, cutoff=4, local=HALF), fedau(cutoff=4, local=HALF)),
        (fedkeep(0.0, 4, 0.3, local=HALF), fedau(cutoff=4, decay=0.3, local=HALF)),
        (fedkeep(1.0, cutoff=1, local=HALF), mifa(local=HALF)),
        (fedkeep(0.6, cutoff=4, local=HALF), fedstale(0.6, cutoff=4, local=HALF)),
    ],
    ids=["FedAU", "discounted FedAU", "MIFA", "FedStale with estimates"],
)
def test_its_corners(corner, other) -> None:
    z, mask = trace(7)
    np.testing.assert_allclose(walk(corner, z, mask, 3.0), walk(other, z, mask, 3.0), rtol=1e-11)


def test_the_server_needs_one_vector_and_sums() -> None:
    method = fedkeep()
    assert method.sums_only
    for around in (amplified(5, 2.0, method), safari(0.8, inner=method)):
        assert around.sums_only
    small, large = (costs(method, start(method, torch.zeros(1000), clients=n)) for n in (10, 20))
    assert (large.server - small.server) / 10 == 20  # bytes a client: FedAU's history
    assert small.server == 2 * 4000 + 10 * 20  # h̄, and the sum of this round's changes


@pytest.mark.parametrize("beta", [0.0, 0.5, 1.0])
def test_with_true_rates_the_direction_is_unbiased_whatever_is_remembered(beta) -> None:
    """E[β·h̄ + (1/N) Σ ω_i (Δ_i − β·h_i)] = mean of all Δ_i, if ω_i = 1/p_i: the page's (1)."""
    draw = np.random.default_rng(0)
    p, delta, h = (draw.uniform(0.1, 0.9, 6), draw.normal(size=6), draw.normal(size=6))
    came = draw.random((200_000, 6)) < p
    direction = beta * h.mean() + (came / p) @ (delta - beta * h) / 6
    # And its variance is the page's (2).
    variance = np.sum((1 - p) / p * (delta - beta * h) ** 2) / 36
    assert direction.mean() == pytest.approx(delta.mean(), abs=4 * np.sqrt(variance / 2e5))
    assert direction.var() == pytest.approx(variance, rel=0.02)


@pytest.mark.parametrize("wrong", [{"beta": 1.5}, {"cutoff": 0}, {"decay": 2.0}, {"shrink": -1}])
def test_bad_settings(wrong) -> None:
    with pytest.raises(InputError, match=next(iter(wrong))):
        fedkeep(**wrong)
