"""Labels to targets."""

import numpy as np
import pytest

from turnout.data.labels import encode
from turnout.data.source import Source
from turnout.errors import InputError


def targets(train, test, **fields):
    parts, classes = encode([np.array(train), np.array(test)], Source(**fields))
    return [part.tolist() for part in parts], classes


def test_labels_from_zero_stay() -> None:
    assert targets([2, 0, 1], [1, 1]) == ([[2, 0, 1], [1, 1]], 3)


def test_a_class_that_only_the_test_set_has_counts() -> None:
    assert targets([0, 1], [2]) == ([[0, 1], [2]], 3)


def test_other_whole_numbers_and_strings_become_their_place() -> None:
    assert targets([1, 10, 5], [5]) == ([[0, 2, 1], [1]], 3)
    assert targets([-1, 1], [1]) == ([[0, 1], [1]], 2)
    assert targets(["dog", "cat"], ["dog"]) == ([[1, 0], [1]], 2)
    assert targets([1.0, 2.0], [2.0]) == ([[0, 1], [1]], 2)


def test_declared_classes_keep_labels_in_range_as_they_are() -> None:
    assert targets([5, 9], [5], classes=10) == ([[5, 9], [5]], 10)
    assert targets(["b", "a"], ["a"], classes=4) == ([[1, 0], [0]], 4)


def test_regression() -> None:
    parts, classes = encode([np.array([1.5, 2.0]), np.array([3])], Source(regression=True))
    assert classes is None
    assert [part.dtype for part in parts] == [np.float32, np.float32]
    assert parts[0].tolist() == [1.5, 2.0]


@pytest.mark.parametrize(
    ("train", "fields", "message"),
    [
        ([0, 10], {"classes": 10}, r"range of column 'label' is '0 … 10'; .* 0 … 9"),
        ([-1, 3], {"classes": 10}, "range of column"),
        ([0.5, 1.0], {}, "holds 0.5; classes must be whole numbers or strings, or set `regr"),
        ([float("nan"), 1.0], {}, "holds nan"),
        ([0, 0], {}, "classes is 1; it must be at least 2"),
        (["a", "b", "c"], {"classes": 2}, "classes is 2"),
        ([float("nan"), 1.0], {"regression": True}, "finite numbers to fit"),
        (["a"], {"regression": True}, "finite numbers to fit"),
    ],
)
def test_refusals(train, fields, message) -> None:
    with pytest.raises(InputError, match=message):
        targets(train, train, **fields)
