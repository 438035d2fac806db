"""Options read from signatures, and values checked against them."""

import math
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import ArrayLike, NDArray

from turnout.algorithms import RECIPES
from turnout.errors import InputError
from turnout.experiments.methods import SUPPLIED as OF_METHODS
from turnout.experiments.options import check, conform, options, phrase
from turnout.participation import PROCESSES

Chances = float | Sequence[float] | NDArray[Any]


def process(
    p: Chances,
    clients: int,
    mode: Literal["a", "b"] = "a",
    groups: ArrayLike | None = None,
    cutoff: int | None = 50,
    hidden: Sequence[int] = (64,),
    generator: np.random.Generator | None = None,
) -> None: ...


def test_what_a_file_cannot_say_is_no_option() -> None:
    kinds = {name: option.kind for name, option in options(process, ["clients"]).items()}
    assert kinds == {
        "p": float | list[float],
        "mode": Literal["a", "b"],
        "groups": list[Any] | None,
        "cutoff": int | None,
        "hidden": list[int],
    }


@pytest.mark.parametrize("registry", [RECIPES, PROCESSES])
def test_every_registered_function_has_only_options_that_a_file_can_say(registry: Any) -> None:
    supplied = {*OF_METHODS, "clients", "seed"}
    for name, build in registry.items():
        import inspect

        assert (
            options(build, supplied).keys() == inspect.signature(build).parameters.keys() - supplied
        ), name


@pytest.mark.parametrize(
    ("value", "kind", "taken"),
    [
        (3, int, 3),
        (3, float, 3.0),
        (0.5, float | list[float], 0.5),
        ([1, 0.5], float | list[float], [1.0, 0.5]),
        (2, int | list[int], 2),
        (2, float | int, 2),
        (math.inf, int | None, None),
        (None, int | None, None),
        ("a", Literal["a", "b"], "a"),
        ([[1, 0], [0, 1]], list[Any] | str, [[1, 0], [0, 1]]),
    ],
)
def test_values_that_fit(value: Any, kind: Any, taken: Any) -> None:
    fits, found = conform(value, kind)
    assert fits
    assert found == taken
    assert type(found) is type(taken)


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (True, int),
        (True, float),
        (1, bool),
        ("3", int),
        (3.0, int),
        (math.inf, int),
        (None, int),
        ("c", Literal["a", "b"]),
        ([1, "x"], list[int]),
        ({"a": 1}, float | list[float]),
    ],
)
def test_values_that_do_not_fit(value: Any, kind: Any) -> None:
    assert not conform(value, kind)[0]


@given(st.integers() | st.floats(allow_nan=False) | st.booleans() | st.text() | st.none())
def test_a_union_fits_what_one_of_its_parts_fits(value: Any) -> None:
    parts = (int, str, None)
    alone = any(conform(value, type(None) if part is None else part)[0] for part in parts)
    assert conform(value, int | str | None)[0] == (alone or value == math.inf)


def test_phrases_say_what_would_be_right() -> None:
    assert phrase(int | None) == 'a whole number or "none"'
    assert phrase(float | list[float]) == "a number or a list of numbers"
    assert phrase(Literal["a", "b"]) == "one of 'a', 'b'"


def test_defaults_fill_in_what_is_not_given() -> None:
    known = options(process, ["clients"])
    assert check("t", "it", {"p": 1}, known) == {
        "p": 1.0, "mode": "a", "groups": None, "cutoff": 50, "hidden": (64,)
    }  # fmt: skip


@pytest.mark.parametrize(
    ("given_options", "sentence"),
    [
        ({"p": 0.1, "cutof": 3}, "t.cutof is not an option of it; did you mean 'cutoff'?"),
        ({"p": 0.1, "cutoff": "x"}, "t.cutoff is 'x'; it must be a whole number or \"none\""),
        ({}, "t.p is missing; it needs it, and it must be a number or a list of numbers"),
    ],
)
def test_what_is_wrong_is_said_in_one_sentence(given_options: Any, sentence: str) -> None:
    with pytest.raises(InputError) as caught:
        check("t", "it", given_options, options(process, ["clients"]))
    assert str(caught.value).startswith(sentence)
