"""Clients put into groups by a number for each: FedAU's shared histories, FedVARP's clusters."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from turnout.errors import require


def group_numbers(field: str, numbers: ArrayLike) -> NDArray[np.int64]:
    """The checked group number of each client.

    >>> group_numbers("groups", [0, 2, -1])
    Traceback (most recent call last):
    turnout.errors.InputError: groups of client 2 is -1; it must be a whole number from 0
    """
    try:
        of = np.asarray(numbers)
    except ValueError:  # lists of several lengths in one another
        require(False, field, numbers, "one whole number from 0 for each client")
        raise
    require(of.ndim == 1 and len(of) > 0, f"shape of {field}", of.shape, "one number a client")
    wrong = ~(of >= 0) if of.dtype.kind in "iu" else np.ones(len(of), dtype=bool)
    for client in np.flatnonzero(wrong)[:1].tolist():
        require(False, f"{field} of client {client}", of.tolist()[client], "a whole number from 0")
    return of.astype(np.int64)


def require_one_each(field: str, of: NDArray[np.int64], clients: int) -> None:
    """Refuse numbers that are not one for each of `clients` clients."""
    require(len(of) == clients, f"length of {field}", len(of), f"the number of clients, {clients}")
