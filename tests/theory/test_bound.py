"""Bounds and settings as values: sums, conditions, the printed table, JSON."""

import json

import pytest

from turnout.errors import InputError
from turnout.theory.bound import Bound, Setting, at_most, counts, equal, nonnegative, positive
from turnout.theory.constants import Constants


def test_a_bound_is_the_sum_of_its_terms_and_knows_the_largest() -> None:
    bound = Bound.of("T", "q", {"a": 1.0, "b": 2.5}, at_most("x ≤ 1", 2, 1), kind="order")
    assert bound.value == 3.5
    assert bound.dominant == "b"
    assert not bound.holds
    assert not bound.explicit


def test_the_table_shows_terms_conditions_and_what_the_constants_are_worth() -> None:
    bound = Bound.of("T", "q", {"a": 1.0, "b": 3.0}, at_most("x ≤ 1", 2, 1), kind="order")
    lines = str(bound).splitlines()
    assert lines[0] == "T: q = O of 4"
    assert "75 %  largest" in lines[2]
    assert lines[4].startswith("  FAILS  x ≤ 1")
    assert lines[-1].startswith("constants hidden by O(·)")


def test_a_table_of_zeros_and_one_of_infinities_print() -> None:
    assert "nan %" in str(Bound.of("T", "q", {"a": 0.0, "b": 0.0}))
    assert "inf" in str(Bound.of("T", "q", {"a": float("inf"), "b": 0.0}))


def test_json_has_everything() -> None:
    bound = Bound.of("T", "q", {"a": 1.0}, equal("x = y", 1.0, 1.0 + 1e-12), note="n")
    found = json.loads(json.dumps(bound.to_dict()))
    assert found["terms"] == {"a": 1.0}
    assert found["conditions"] == [
        {"text": "x = y", "holds": True, "left": 1.0, "right": 1 + 1e-12}
    ]
    assert (found["holds"], found["constants"], found["note"]) == (True, "explicit", "n")


def test_a_limit_that_was_chosen_as_such_holds_in_spite_of_rounding() -> None:
    assert at_most("", 0.1 * 3, 0.3).holds
    assert not at_most("", 0.3001, 0.3).holds


def test_a_setting_is_its_least_limit() -> None:
    setting = Setting.least("lr", "γ", {"a": 2.0, "b": 1.0}, "s")
    assert (setting.value, setting.reason) == (1.0, "b")
    assert str(setting).splitlines() == ["lr (γ) = 1: b [s]", "  below a = 2"]


@pytest.mark.parametrize(
    ("check", "value"),
    [
        (positive, 0),
        (positive, float("nan")),
        (positive, float("inf")),
        (positive, "1"),
        (positive, None),
        (nonnegative, -1e-9),
        (counts, 0),
        (counts, 1.5),
        (counts, True),
    ],
)
def test_bad_numbers_are_refused_by_name(check, value) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(InputError, match=r"^rounds is .*; it must be"):
        check(rounds=value)


@pytest.mark.parametrize(
    "wrong",
    [
        {"smoothness": -1},
        {"smoothness": 1, "noise": -1},
        {"smoothness": 1, "convexity": 2},
        {"smoothness": 1, "gap": float("inf")},
        {"smoothness": 1, "bias": -1.0},
    ],
)
def test_constants_that_cannot_be_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(InputError, match="must be"):
        Constants(**wrong)
