"""Checked arguments of participation processes."""

import math
from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from turnout.errors import require

Chances = float | Sequence[float] | NDArray[Any]
"""A probability for each client, or one for all of them."""


def whole(field: str, value: Any, least: int = 0, most: int | None = None) -> int:
    """`value` if it is a whole number within bounds.

    >>> whole("per_round", 11, least=1, most=10)
    Traceback (most recent call last):
    turnout.errors.InputError: per_round is 11; it must be a whole number from 1 to 10
    """
    bounds = f"of at least {least}" if most is None else f"from {least} to {most}"
    right = f"a whole number {bounds}"
    require(isinstance(value, Integral) and not isinstance(value, bool), field, value, right)
    number = int(value)
    require(least <= number and (most is None or number <= most), field, number, right)
    return number


def positive(field: str, value: Any, most: float = math.inf, zero: bool = False) -> float:
    """`value` if it is a finite number above 0 (or 0 itself, with `zero`) and at most `most`."""
    right = "a finite number " + ("of at least 0" if zero else "above 0")
    right += "" if math.isinf(most) else f" and at most {most:g}"
    require(isinstance(value, Real) and not isinstance(value, bool), field, value, right)
    number = float(value)
    within = math.isfinite(number) and number <= most and (number >= 0 if zero else number > 0)
    require(within, field, number, right)
    return number


def array(field: str, value: Any, right: str) -> NDArray[Any]:
    """`value` as an array of numbers or booleans; text and ragged rows are refused."""
    try:
        table = np.asarray(value)
    except ValueError:
        table = np.empty(0, dtype=object)
    require(table.dtype.kind in "biuf", field, value, right)
    return table


def chances(field: str, value: Chances, clients: int | None = None) -> NDArray[np.float64]:
    """A probability for each client, as an array of our own; one number stands for all `clients` of them.

    >>> chances("p", [0.1, 1.2])
    Traceback (most recent call last):
    turnout.errors.InputError: p of client 1 is 1.2; it must be a probability, from 0 to 1
    """
    if clients is not None:
        clients = whole("clients", clients, least=1)
    right = "a probability, or a list with one for each client"
    table = array(field, value, right).astype(np.float64)
    require(table.ndim <= 1, f"shape of {field}", table.shape, f"that of {right}")
    if table.ndim == 0:
        require(clients is not None, "clients", clients, f"given where {field} is one for all")
        require(bool(0 <= table <= 1), field, float(table), "a probability, from 0 to 1")
        table = np.full(clients or 1, table)
    require(len(table) > 0, f"length of {field}", 0, "at least 1, a probability for each client")
    fits = clients is None or len(table) == clients
    require(fits, f"length of {field}", len(table), f"the number of clients, {clients}")
    wrong = ~((table >= 0) & (table <= 1))  # NaN fails both, so it is caught
    for client in np.flatnonzero(wrong)[:1].tolist():
        field = f"{field} of client {client}"
        require(False, field, float(table[client]), "a probability, from 0 to 1")
    return table
