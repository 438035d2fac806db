"""What a user may be told in one sentence: bad input, checkpoints and processes that failed."""

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any


class InputError(ValueError):
    """Bad input: one sentence that names the field, the value and what would be right.

    The command line prints it and exits with code 2; it never shows a traceback.
    """


class CheckpointError(Exception):
    """One sentence on why a checkpoint cannot be written or read."""


class WriteError(CheckpointError):
    """One sentence on files that cannot be written, on a full disk for example."""


class WorkerError(Exception):
    """One sentence on worker processes that died, and died again."""


def require(holds: bool, field: str, value: Any, right: str) -> None:
    """Raise an `InputError` about `field` unless `holds`.

    >>> require(False, "cutoff", 0, "a whole number of at least 1, or None")
    Traceback (most recent call last):
    turnout.errors.InputError: cutoff is 0; it must be a whole number of at least 1, or None
    """
    if not holds:
        raise InputError(f"{field} is {value!r}; it must be {right}")


def choose(field: str, value: str, known: Iterable[str]) -> str:
    """`value` if it is among `known`; otherwise an `InputError` that suggests the nearest.

    >>> choose("algorithm", "fedua", ["fedau", "mifa"])
    Traceback (most recent call last):
    turnout.errors.InputError: algorithm 'fedua' is not known; did you mean 'fedau'? (known: fedau, mifa)
    """
    names = sorted(known)
    if value in names:
        return value
    near = get_close_matches(value, names, n=3, cutoff=0.5)
    near.sort(key=lambda name: sorted(name) != sorted(value))  # letters that have changed places
    hint = f" did you mean {near[0]!r}?" if near else ""
    raise InputError(f"{field} {value!r} is not known;{hint} (known: {', '.join(names)})")
