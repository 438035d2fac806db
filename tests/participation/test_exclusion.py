"""Clients that never come, and m drawn among the others."""

import numpy as np
import pytest
from tests.participation.examples import z_scores

from turnout.errors import InputError
from turnout.participation import (
    bernoulli,
    excluded,
    given,
    grouped,
    lossy,
    markov,
    sampled,
    uniform,
)


@pytest.mark.parametrize("s", [0, 2, 4])
def test_the_setting_of_safari(s: int) -> None:
    """m = 5 a round, uniform among the M − s that ever come."""
    process = excluded(uniform(10, 5, seed=1), absent=s, seed=2)
    mask = process.mask(3000)
    assert (mask.sum(axis=1) == 5).all()
    came = mask.any(axis=0)
    assert came.sum() == 10 - s
    assert np.abs(z_scores(mask.sum(axis=0)[came], 3000, 5 / (10 - s))).max() < 4
    assert process.rates.tolist() == np.where(came, 5 / (10 - s), 0).tolist()


def test_which_clients_depends_on_the_seed_and_not_on_the_process() -> None:
    def gone(process: object, seed: int) -> list[int]:
        return np.flatnonzero(excluded(process, 4, seed).rates == 0).tolist()

    one = uniform(10, 5, seed=3)
    assert gone(one, 0) == gone(bernoulli(0.5, 10), 0) == gone(markov(0.2, 10, seed=8), 0)
    assert len({tuple(gone(one, seed)) for seed in range(20)}) > 10


def test_given_rows() -> None:
    mask = excluded(uniform(6, 3), absent=[0, 4, 5]).mask(3)
    assert mask.tolist() == [[False, True, True, True, False, False]] * 3
    assert excluded(uniform(6, 3), absent=[]).mask(9).tolist() == uniform(6, 3).mask(9).tolist()


@pytest.mark.parametrize("pattern", [bernoulli, markov])
def test_others_who_come_independently_do_not_notice(pattern: object) -> None:
    p = np.linspace(0, 1, 12)
    plain, without = pattern(p, seed=5), excluded(pattern(p, seed=5), absent=[2, 11])
    expected = plain.mask(60)
    expected[:, [2, 11]] = False
    assert np.array_equal(without.mask(60), expected)
    assert without.rates[[2, 11]].tolist() == [0, 0]
    assert without.rates[3:11].tolist() == p[3:11].tolist()


def test_a_permutation_goes_over_those_who_can_come() -> None:
    process = excluded(sampled(grouped(8, groups=2, length=3), 1, seed=4), absent=[0, 5])
    mask = process.mask(12)
    assert mask.sum(axis=1).tolist() == [1] * 12
    assert mask[:6].sum(axis=0).tolist() == [0, 1, 1, 1, 1, 0, 1, 1]
    assert process.rates == pytest.approx(np.array([0, 1, 1, 1, 1, 0, 1, 1]) / 6)


def test_losses_stay_with_their_clients() -> None:
    process = excluded(lossy(uniform(4, 2), loss=[0, 1, 1, 0]), absent=[0, 1])
    assert process.mask(2, cohort=True).tolist() == [[False, False, True, True]] * 2
    assert process.mask(2).tolist() == [[False, False, False, True]] * 2


def test_exclusions_nest() -> None:
    twice = excluded(excluded(uniform(6, 2), absent=[0]), absent=[1, 5])
    assert (twice.mask(40).sum(axis=1) == 2).all()
    assert twice.mask(40).any(axis=0).tolist() == [False, False, True, True, True, False]
    assert twice.rates == pytest.approx([0, 0, 2 / 3, 2 / 3, 2 / 3, 0])
    # Two numbers with one seed are two draws.
    draws = [excluded(excluded(bernoulli(1.0, 40), 10), 10).rates == 0 for _ in range(2)]
    assert 10 < draws[0].sum() <= 20
    assert draws[0].tolist() == draws[1].tolist()


def test_a_given_mask_loses_its_columns() -> None:
    assert excluded(given([[1, 1, 0], [0, 1, 1]]), absent=[1]).mask(2).tolist() == [
        [True, False, False],
        [False, False, True],
    ]


@pytest.mark.parametrize(
    ("inner", "absent", "message"),
    [
        (uniform(10, 5), 6, "per_round is 5; it must be a whole number from 1 to 4"),
        (uniform(10, 5), 10, "absent is 10; it must be a whole number from 0 to 9"),
        (uniform(10, 5), -1, "absent is -1; it must be a whole number from 0 to 9"),
        (uniform(3, 1), [0, 3], "a row in absent is 3; it must be a whole number from 0 to 2"),
        (uniform(3, 1), [0, 1, 2], "absent is 'every client'; it must be fewer than that"),
        (uniform(3, 1), [0.5], "absent is [0.5]; it must be a number of clients, or a list of"),
        (uniform(3, 1), "two", "absent is 'two'; it must be a number of clients, or a list of"),
        (uniform(3, 1), [[1], [1, 2]], "absent is [[1], [1, 2]]; it must be a number of clients"),
        (
            excluded(uniform(4, 1), absent=[0, 1]),
            [2, 3],
            "the number of clients that can come is 0; it must be at least 1",
        ),
    ],
)
def test_bad_input(inner: object, absent: object, message: str) -> None:
    with pytest.raises(InputError) as error:
        excluded(inner, absent)
    assert message in str(error.value)
