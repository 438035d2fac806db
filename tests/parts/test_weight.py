"""Weight rules without history."""

import numpy as np
import pytest

from turnout.algorithm import per_client, per_delivered
from turnout.errors import InputError
from turnout.parts.weight import inverse, uniform

ROWS = np.array([2, 0])


@pytest.mark.parametrize("divisor", [per_client, per_delivered])
def test_uniform(divisor) -> None:
    rule = uniform(divisor)
    assert rule.divisor is divisor
    assert rule.init(3) == {}
    assert rule.weigh({}, 5, ROWS).tolist() == [1, 1]
    assert rule.observe({}, 5, ROWS) == {}


def test_inverse() -> None:
    rule = inverse([0.5, 0.1, 0.25])
    assert rule.divisor is per_client
    assert rule.init(3) == {}
    assert rule.weigh({}, 5, ROWS).tolist() == [4, 2]
    assert rule.observe({}, 5, ROWS) == {}


def test_weights_are_the_callers_to_change() -> None:
    rule = inverse([0.5, 0.5, 0.5])
    rule.weigh({}, 0, ROWS).fill(7)
    assert rule.weigh({}, 0, ROWS).tolist() == [2, 2]


def test_a_rate_that_is_changed_later_changes_nothing() -> None:
    p = np.array([0.5, 0.5, 0.5])
    rule = inverse(p)
    p[:] = 0.0
    assert rule.weigh({}, 0, ROWS).tolist() == [2, 2]


@pytest.mark.parametrize("p", [0.0, -0.1, 1.1, float("nan"), float("inf")])
def test_bad_rates(p) -> None:
    with pytest.raises(InputError, match=r"^p\[1\] is .*; it must be above 0 and at most 1"):
        inverse([0.5, p])
