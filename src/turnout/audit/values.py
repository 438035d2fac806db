"""From columns to numbers: whole numbers, moments in seconds, and the rows of clients."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from turnout.audit.columns import Columns
from turnout.errors import require

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]

_ZONE = r"[T ].*(Z|[+-]\d\d(:?\d\d)?)$"
_NUMBER = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$"
_MILLISECONDS = 1e11  # as seconds this is the year 5138, as milliseconds 1973


class Moments(NamedTuple):
    """Seconds, from whatever zero the log has."""

    seconds: Floats
    without_zone: int = 0
    """How many were dates without a time zone, read as UTC."""
    zones: int = 0
    """How many had another zone than UTC."""
    milliseconds: bool = False


class Roster(NamedTuple):
    row: Whole
    clients: int
    names: list[str] | None
    unseen: int
    """Clients that the numbering implies and that have no entry."""


def whole(columns: Columns, name: str) -> Whole:
    """A column of whole numbers of at least 0."""
    import pyarrow
    from pyarrow import compute

    column = columns.values[name]
    right = "a whole number of at least 0"
    kind = str(column.type)
    if kind in ("string", "large_string"):
        text = compute.utf8_trim_whitespace(column)
        try:
            numbers = compute.cast(text, "int64").to_numpy()
        except pyarrow.ArrowException:
            columns.check(
                name, compute.match_substring_regex(text, r"^\d{1,18}$").to_numpy(), right
            )
            raise
    else:
        good = kind == "bool" or "int" in kind
        require(good, f"the type of {name} in {columns.path}", kind, "one of whole numbers")
        numbers = compute.cast(column, "int64").to_numpy()
    columns.check(name, numbers >= 0, right)
    found: Whole = numbers
    return found


def moments(columns: Columns, name: str) -> Moments:
    """A column of seconds, of milliseconds since 1970, or of ISO dates with or without zones."""
    from pyarrow import compute

    column = columns.values[name]
    kind = str(column.type)
    if kind.startswith("timestamp"):
        seconds = compute.cast(column, "timestamp[us]" if "tz" not in kind else column.type)
        micro = compute.cast(
            compute.cast(seconds, _utc() if "tz" in kind else "timestamp[us]"), "int64"
        )
        return Moments(micro.to_numpy() / 1e6, 0 if "tz" in kind else len(column))
    if kind not in ("string", "large_string"):
        good = "int" in kind or kind in ("float", "double")
        require(good, f"the type of {name} in {columns.path}", kind, "a number or a time")
        return _seconds(columns, name, compute.cast(column, "float64").to_numpy())
    text = compute.utf8_trim_whitespace(column)
    numeric = compute.match_substring_regex(text, _NUMBER).to_numpy()
    if numeric.all():
        return _seconds(columns, name, compute.cast(text, "float64").to_numpy())
    return _dates(columns, name, text, numeric)


def _seconds(columns: Columns, name: str, numbers: Floats) -> Moments:
    columns.check(name, np.isfinite(numbers), "a finite number of seconds")
    if len(numbers) and float(np.median(np.abs(numbers))) > _MILLISECONDS:
        return Moments(numbers / 1000, milliseconds=True)
    return Moments(numbers)


def _dates(columns: Columns, name: str, text: Any, numeric: NDArray[np.bool_]) -> Moments:
    import pyarrow
    from pyarrow import compute

    right = "seconds, or a date and time such as 2024-03-01T08:30:00+02:00"
    columns.check(name, numeric == numeric[0], right + ", the same as in the first line")
    zoned = compute.match_substring_regex(text, _ZONE).to_numpy()
    seconds = np.empty(len(zoned))
    elsewhere = compute.match_substring_regex(text, r"[T ].*[+-]\d\d(:?\d\d)?$").to_numpy()
    for has, kind in ((zoned, _utc()), (~zoned, pyarrow.timestamp("us"))):
        part = text.filter(pyarrow.array(has))
        try:
            micro = compute.cast(compute.cast(part, kind), "int64").to_numpy()
        except pyarrow.ArrowException:
            # Each alone, to name the first that is no date; this is the way to an error only.
            for row in np.flatnonzero(has).tolist():
                try:
                    compute.cast(text[row], kind)
                except pyarrow.ArrowException:
                    require(False, columns.where(name, row), text[row].as_py(), right)
            raise
        seconds[has] = micro / 1e6
    shifted = int(
        (elsewhere & ~compute.match_substring_regex(text, r"[+-]00:?00$").to_numpy()).sum()
    )
    return Moments(seconds, int((~zoned).sum()), shifted)


def _utc() -> Any:
    import pyarrow

    return pyarrow.timestamp("us", "UTC")


def roster(columns: Columns, name: str, clients: int | None) -> Roster:
    """The clients' rows.

    Whole numbers that are nearly dense are rows already: those that lack are clients never seen.
    Others (names, ids of devices) get rows in sorted order.
    """
    from pyarrow import compute

    column = columns.values[name]
    require(len(column) > 0, f"the number of entries in {columns.path}", 0, "at least 1")
    if "string" in str(column.type):
        column = compute.utf8_trim_whitespace(column)
        numeric = bool(compute.all(compute.match_substring_regex(column, r"^\d{1,18}$")).as_py())
        columns.check(name, compute.not_equal(column, "").to_numpy(), "a client")
    else:
        numeric = "int" in str(column.type)
    note = columns.notes.get("clients", "")
    told = int(note) if note.isdecimal() else None
    if numeric:
        ids = whole(columns, name)
        distinct, row = np.unique(ids, return_inverse=True)
        dense = clients or told or 2 * len(distinct) + 10
        if distinct[-1] < dense:
            number = max(int(distinct[-1]) + 1, clients or 0, told or 0)
            return Roster(ids, number, None, number - len(distinct))
        names = [str(each) for each in distinct.tolist()]
    else:
        found = compute.cast(column, "string").combine_chunks().dictionary_encode()
        order = np.argsort(np.array(found.dictionary.to_pylist()), kind="stable")
        rank = np.empty(len(order), dtype=np.int64)
        rank[order] = np.arange(len(order))
        row = rank[found.indices.to_numpy()]
        names = [found.dictionary[k].as_py() for k in order.tolist()]
    right = f"at least {len(names)}, the clients in {columns.path}"
    require(clients is None or clients >= len(names), "clients", clients, right)
    number = max(len(names), clients or 0)
    return Roster(row.astype(np.int64), number, names, number - len(names))
