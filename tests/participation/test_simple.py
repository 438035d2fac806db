"""Always, uniform and Bernoulli."""

from itertools import combinations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from tests.participation.examples import z_scores

from turnout.participation import always, bernoulli, uniform


def test_always() -> None:
    assert always(4).mask(3).all()
    assert always(4).rates.tolist() == [1, 1, 1, 1]


@given(clients=st.integers(1, 40), data=st.data(), seed=st.integers(0, 1000))
def test_uniform_brings_m_each_round(clients: int, data: st.DataObject, seed: int) -> None:
    per_round = data.draw(st.integers(1, clients))
    process = uniform(clients, per_round, seed)
    assert process.mask(5).sum(axis=1).tolist() == [per_round] * 5
    assert process.rates.tolist() == [per_round / clients] * clients


def test_uniform_draws_every_set_equally_often() -> None:
    rounds = 12_000
    mask = uniform(6, 3, seed=4).mask(rounds)
    sets = [mask[:, list(chosen)].all(axis=1).sum() for chosen in combinations(range(6), 3)]
    assert sum(sets) == rounds
    assert np.abs(z_scores(np.array(sets), rounds, 1 / 20)).max() < 4


def test_uniform_remembers_nothing() -> None:
    mask = uniform(10, 3, seed=1).mask(8000)
    again = (mask[1:] & mask[:-1]).sum()
    assert abs(z_scores(again, mask[:-1].sum(), 0.3)) < 4


def test_bernoulli_rates_a_client() -> None:
    p = np.linspace(0.005, 0.995, 200)
    rounds = 3000
    z = z_scores(bernoulli(p, seed=9).mask(rounds).sum(axis=0), rounds, p)
    assert np.abs(z).max() < 4.5
    assert abs((z**2).sum() - 200) < 5 * np.sqrt(2 * 200)  # neither too far nor too regular


def test_bernoulli_remembers_nothing() -> None:
    mask = bernoulli(0.3, clients=100, seed=2).mask(2000)
    again = (mask[1:] & mask[:-1]).sum()
    assert abs(z_scores(again, mask[:-1].sum(), 0.3)) < 4


def test_one_p_stands_for_all() -> None:
    assert np.array_equal(bernoulli(0.2, clients=9).mask(30), bernoulli([0.2] * 9).mask(30))


def test_the_argument_remains_the_callers_own() -> None:
    p = np.full(5, 0.5)
    process = bernoulli(p)
    mask = process.mask(20)
    p[:] = 0
    assert np.array_equal(process.mask(20), mask)
    assert process.rates.tolist() == [0.5] * 5
