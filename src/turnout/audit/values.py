"""From columns to numbers: whole numbers, moments in seconds, and the rows of clients."""

from collections.abc import Collection
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from turnout.audit.columns import Columns
from turnout.errors import require

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]

_ZONE = r"[T ].*(Z|[+-]\d\d(:?\d\d)?)$"
_NUMBER = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$"
_NOTHING = ("", "null", "nan", "nat", "none")
_TIME = "seconds, or a date and time such as 2024-03-01T08:30:00+02:00"
_MILLISECONDS = 1e11  # as seconds this is the year 5138, as milliseconds 1973


class Moments(NamedTuple):
    """Seconds, from whatever zero the log has; NaN where none is said."""

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


def whole(columns: Columns, name: str) -> Whole:
    """A column of whole numbers of at least 0; 3.0 is one, too."""
    import pyarrow
    from pyarrow import compute

    column = columns.column(name)
    right = "a whole number of at least 0"
    kind = str(column.type)
    try:
        if kind == "string":
            text = compute.utf8_trim_whitespace(column)
            try:
                numbers = compute.cast(text, "int64").to_numpy()
            except pyarrow.ArrowException:
                numbers = _integral(compute.cast(text, "float64").to_numpy())
        elif kind in ("float", "double"):
            numbers = _integral(column.to_numpy())
        else:
            good = kind == "bool" or pyarrow.types.is_integer(column.type)
            require(good, f"the type of {name} in {columns.path}", kind, "one of whole numbers")
            numbers = compute.cast(column, "int64").to_numpy()
    except pyarrow.ArrowException:
        text = compute.cast(column, "string")
        good = compute.match_substring_regex(text, r"^\s*\d{1,18}(\.0*)?\s*$").to_numpy()
        columns.check(name, good, right)
        raise
    columns.check(name, numbers >= 0, right)
    found: Whole = numbers
    return found


def _integral(numbers: Floats) -> Whole:
    """As integers; −1 for what is none."""
    good = np.isfinite(numbers) & (numbers == np.floor(numbers)) & (np.abs(numbers) < 2.0**53)
    found: Whole = np.where(good, numbers, -1).astype(np.int64)
    return found


def flags(
    columns: Columns, name: str, on: Collection[str], off: Collection[str], right: str
) -> NDArray[np.bool_]:
    """A column of words that mean yes or no, in whatever case."""
    from pyarrow import compute

    text = compute.cast(columns.column(name), "string")
    found = compute.utf8_lower(compute.utf8_trim_whitespace(text)).combine_chunks()
    coded = found.dictionary_encode()  # a few words, of perhaps millions of entries
    words = np.array(coded.dictionary.to_pylist(), dtype=object)
    place = coded.indices.to_numpy()
    columns.check(name, np.isin(words, [*on, *off])[place], right)
    yes: NDArray[np.bool_] = np.isin(words, list(on))[place]
    return yes


def moments(columns: Columns, name: str, gaps: bool = False) -> Moments:
    """A column of seconds, of milliseconds since 1970, or of ISO dates with or without zones.

    With `gaps`, an entry may say nothing: empty, null, NaN, NaT or None.
    """
    import pyarrow
    from pyarrow import compute

    column = columns.column(name, gaps)
    text = str(column.type) == "string"
    if text:
        column = compute.utf8_trim_whitespace(column)
        nothing = compute.is_in(compute.utf8_lower(column), pyarrow.array(_NOTHING))
    else:
        nothing = compute.is_null(column, nan_is_null=True)
    there = ~compute.fill_null(nothing, True).to_numpy()
    if not gaps:
        columns.check(name, there, _TIME)
    elif not there.all():
        if not there.any():
            return Moments(np.full(len(column), np.nan))
        column = compute.if_else(
            pyarrow.chunked_array([there]), column, column[int(there.argmax())]
        )
    found = _texts(columns, name, column) if text else _typed(columns, name, column)
    return found if there.all() else found._replace(seconds=np.where(there, found.seconds, np.nan))


def _typed(columns: Columns, name: str, column: Any) -> Moments:
    import pyarrow
    from pyarrow import compute

    kind = str(column.type)
    if kind.startswith("timestamp"):
        zoned = "tz" in kind
        micro = compute.cast(column, _utc() if zoned else "timestamp[us]", safe=False)
        seconds = compute.cast(micro, "int64").to_numpy() / 1e6
        return Moments(seconds, 0 if zoned else len(column))
    good = pyarrow.types.is_integer(column.type) or kind in ("float", "double")
    require(good, f"the type of {name} in {columns.path}", kind, "a number or a time")
    return _seconds(columns, name, compute.cast(column, "float64").to_numpy())


def _texts(columns: Columns, name: str, text: Any) -> Moments:
    from pyarrow import compute

    numeric = compute.match_substring_regex(text, _NUMBER).to_numpy()
    if numeric.all():
        return _seconds(columns, name, compute.cast(text, "float64").to_numpy())
    return _dates(columns, name, text, numeric)


def _seconds(columns: Columns, name: str, numbers: Floats) -> Moments:
    columns.check(name, np.abs(numbers) < 2.0**53, "a number of seconds, at most 2**53")
    if len(numbers) and float(np.median(np.abs(numbers))) > _MILLISECONDS:
        return Moments(numbers / 1000, milliseconds=True)
    return Moments(numbers)


def _dates(columns: Columns, name: str, text: Any, numeric: NDArray[np.bool_]) -> Moments:
    import pyarrow
    from pyarrow import compute

    columns.check(name, numeric == numeric[0], _TIME + ", the same as in the first line")
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
                    require(False, columns.where(name, row), text[row].as_py(), _TIME)
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
    import pyarrow
    from pyarrow import compute

    column = columns.column(name)
    require(len(column) > 0, f"the number of entries in {columns.path}", 0, "at least 1")
    kind = str(column.type)
    if kind == "string":
        column = compute.utf8_trim_whitespace(column)
        numeric = bool(compute.all(compute.match_substring_regex(column, r"^\d{1,18}$")).as_py())
        columns.check(name, compute.not_equal(column, "").to_numpy(), "a client")
    else:
        numeric = pyarrow.types.is_integer(column.type) or kind in ("float", "double")
        good = numeric or kind == "bool"
        require(good, f"the type of {name} in {columns.path}", kind, "text or whole numbers")
    note = columns.notes.get("clients", "")
    told = int(note) if note.isdecimal() else None
    if numeric:
        ids = whole(columns, name)
        distinct, row = np.unique(ids, return_inverse=True)
        dense = clients or told or 2 * len(distinct) + 10
        if distinct[-1] < dense:
            number = max(int(distinct[-1]) + 1, clients or 0, told or 0)
            return Roster(ids, number, None)
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
    return Roster(row.astype(np.int64), number, names)
