"""Places, gaps and their errors, worked out by hand."""

import math

import pytest

from turnout.reproduce.standings import first, gaps, patterns_of, standings

SCORES = {
    ("a", "calm"): [90.0, 92.0, 94.0],
    ("b", "calm"): [89.0, 92.0, 92.0],
    ("c", "calm"): [50.0, 50.0, 50.0],
    ("a", "storm"): [70.0, 71.0, 72.0],
    ("b", "storm"): [80.0, 80.0, 83.0],
}
"""c was not played in the storm."""


def test_who_is_first() -> None:
    assert patterns_of(SCORES) == ["calm", "storm"]
    assert [first(SCORES, pattern) for pattern in ("calm", "storm")] == ["a", "b"]


def test_gaps_are_paired_by_seed() -> None:
    found = gaps(SCORES)
    # Behind a by 1, 0, 2: mean 1, standard deviation 1.
    assert found["b", "calm"] == pytest.approx((1.0, 1 / math.sqrt(3)))
    assert found["c", "calm"].behind == 42
    assert found["a", "calm"] == (0.0, 0.0)
    assert [found[m, "calm"].tied for m in "abc"] == [True, False, False]


def test_within_one_standard_error_of_the_first_is_a_tie() -> None:
    found = gaps({("a", "p"): [1.0, 2.0, 3.0], ("b", "p"): [3.0, 1.0, 1.0]})
    assert found["b", "p"].behind == pytest.approx(1 / 3)
    assert found["b", "p"].error == pytest.approx(math.sqrt(13 / 9))
    assert found["b", "p"].tied


def test_one_seed_has_no_error_and_no_ties() -> None:
    found = gaps({("a", "p"): [2.0], ("b", "p"): [1.9]})
    assert found["b", "p"].error is None
    assert [found[m, "p"].tied for m in "ab"] == [True, False]


def test_standings_by_hand() -> None:
    found = {standing.method: standing for standing in standings(SCORES)}
    # Places in the calm, seed by seed: a 1, 1½, 1 and b 2, 1½, 2; in the storm b 1 and a 2.
    assert found["a"].rank == pytest.approx((3.5 / 3 + 2) / 2)
    assert found["b"].rank == pytest.approx((5.5 / 3 + 1) / 2)
    assert found["c"].rank == 3
    assert (found["a"].tied, found["a"].patterns, found["a"].worst) == (1, 2, pytest.approx(10))
    assert (found["c"].tied, found["c"].patterns) == (0, 1)
    assert [standing.method for standing in standings(SCORES)] == ["b", "a", "c"]


def test_a_rank_is_as_sure_as_seeds_agree() -> None:
    found = {standing.method: standing for standing in standings(SCORES)}
    assert found["c"].low == found["c"].high == 3  # last in every seed
    a = found["a"]
    assert a.low < a.rank < a.high
    assert a.low >= 1.5  # one in the calm with every seed, two in the storm
    assert a.high <= 1.75


def test_the_order_of_methods_changes_nothing() -> None:
    turned = dict(reversed(SCORES.items()))
    one, other = ({s.method: s.rank for s in standings(each)} for each in (SCORES, turned))
    assert one == pytest.approx(other)
