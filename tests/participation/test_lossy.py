"""Updates that were computed and never arrived."""

import numpy as np
from tests.participation.examples import z_scores

from turnout.participation import always, bernoulli, cyclic, lossy, uniform


def test_the_cohort_is_what_it_was() -> None:
    inner = uniform(12, 5, seed=2)
    process = lossy(inner, loss=0.4, seed=3)
    assert np.array_equal(process.mask(50, cohort=True), inner.mask(50))
    assert (process.mask(50) <= inner.mask(50)).all()
    assert process.mask(50).sum() < inner.mask(50).sum()


def test_loss_rates_a_client() -> None:
    loss = np.linspace(0.01, 0.99, 60)
    process = lossy(always(60), loss, seed=1)
    rounds = 3000
    assert np.abs(z_scores(process.mask(rounds).sum(axis=0), rounds, 1 - loss)).max() < 4.5
    assert process.rates.tolist() == (1 - loss).tolist()


def test_rates_multiply() -> None:
    p, loss = np.array([0.2, 0.5, 0.9]), np.array([0.5, 0.0, 1.0])
    process = lossy(bernoulli(p, seed=4), loss, seed=4)
    assert process.rates.tolist() == [0.1, 0.5, 0.0]
    assert abs(z_scores(process.mask(6000)[:, 0].sum(), 6000, 0.1)) < 4


def test_none_and_all() -> None:
    inner = cyclic([0.3, 0.6], period=10)
    assert np.array_equal(lossy(inner, 0.0).mask(30), inner.mask(30))
    assert not lossy(inner, 1.0).mask(30).any()


def test_losses_are_independent_of_attendance() -> None:
    # The same seed inside and outside: the coins must still not be the same coins.
    process = lossy(bernoulli(0.5, 200, seed=7), loss=0.5, seed=7)
    asked = process.mask(200, cohort=True).sum()
    assert abs(z_scores(process.mask(200).sum(), asked, 0.5)) < 4


def test_two_losses_of_one_seed_are_two_losses() -> None:
    process = lossy(lossy(always(200), 0.5, seed=1), 0.5, seed=1)
    assert abs(z_scores(process.mask(200).sum(), 200 * 200, 0.25)) < 4
    assert process.rates.tolist() == [0.25] * 200
