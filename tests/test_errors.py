"""Bad input is one sentence that names the field, the value and what would be right."""

import pytest

from turnout.errors import InputError, choose, require


def test_what_holds_passes() -> None:
    require(True, "cutoff", 50, "anything")


@pytest.mark.parametrize(
    ("value", "shown"), [(0, "0"), ("a", "'a'"), (None, "None"), ((1, 2), "(1, 2)")]
)
def test_what_does_not_hold_is_named(value, shown) -> None:
    with pytest.raises(InputError) as caught:
        require(False, "cutoff", value, "at least 1")
    assert str(caught.value) == f"cutoff is {shown}; it must be at least 1"


def test_it_is_a_value_error() -> None:
    assert issubclass(InputError, ValueError)


KNOWN = ["fedavg", "fedau", "mifa"]


def test_a_known_name_is_returned() -> None:
    assert choose("algorithm", "mifa", KNOWN) == "mifa"


@pytest.mark.parametrize(
    ("given", "hint"),
    [
        ("fedua", " did you mean 'fedau'?"),
        ("fedag", " did you mean 'fedavg'?"),
        ("mfia", " did you mean 'mifa'?"),
        ("zzz", ""),
        ("", ""),
    ],
)
def test_an_unknown_name_gets_the_nearest_and_all(given, hint) -> None:
    with pytest.raises(InputError) as caught:
        choose("algorithm", given, iter(KNOWN))
    expected = f"algorithm {given!r} is not known;{hint} (known: fedau, fedavg, mifa)"
    assert str(caught.value) == expected


def test_sentences_fit_on_a_line() -> None:
    with pytest.raises(InputError) as caught:
        choose("algorithm", "fedua", KNOWN)
    assert "\n" not in str(caught.value)
