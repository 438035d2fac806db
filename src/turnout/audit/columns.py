"""Columns of a CSV or Parquet file, read fast, with the line of a row for messages about it."""

import csv
from codecs import getincrementaldecoder
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from turnout.errors import InputError, require

CLIENT: tuple[str, ...] = ("client", "client_id", "cid", "device", "device_id", "user", "user_id")
CLIENT += ("node", "node_id", "partition_id", "name")
"""What the column of clients may be called, in small letters and with underscores."""

_DELIMITERS = ",;\t"
_RIGHT = "text, numbers or times"


@dataclass(frozen=True, eq=False)
class Columns:
    """What was read. Values of a CSV file are text; those of Parquet have their own types."""

    path: Path
    values: dict[str, Any]
    notes: dict[str, str]
    """`key=value` pairs of comments, of which the last one holds."""
    place: Callable[[int], str]
    """Where row k stands: "line 7"."""
    rows: int = field(default=0)

    def find(self, names: Sequence[str]) -> str | None:
        """The first of these columns that there is, be it spelt "client_id" or "Client ID"."""
        spelt = {_normal(name): name for name in reversed(self.values)}
        return next((spelt[name] for name in names if name in spelt), None)

    def column(self, name: str, gaps: bool = False) -> Any:
        """Its values as plain text, numbers or times; refused where one lacks, unless `gaps`."""
        import pyarrow

        raw = self.values[name]
        try:
            column = _plain(raw)
        except pyarrow.ArrowException:
            require(False, f"the type of {name} in {self.path}", str(raw.type), _RIGHT)
        if column.null_count and not gaps:
            self.check(name, column.is_valid().to_numpy(), "a value")
        return column

    def where(self, name: str, row: int) -> str:
        return f"{name} in {self.path}, {self.place(row)},"

    def value(self, name: str, row: int) -> Any:
        return self.values[name][row].as_py()

    def check(self, name: str, holds: NDArray[np.bool_], right: str) -> None:
        """An `InputError` about the first row that does not hold."""
        for row in np.flatnonzero(~holds)[:1].tolist():
            require(False, self.where(name, row), self.value(name, row), right)


def read_columns(path: Path) -> Columns:
    """Read a file by its ending: .parquet, or text with a header for any other."""
    return _parquet(path) if path.suffix == ".parquet" else _csv(path)


def _parquet(path: Path) -> Columns:
    import pyarrow
    from pyarrow import parquet

    try:
        table = parquet.read_table(path)
        names = table.column_names
        stored = {
            k.decode(): v.decode()
            for k, v in (table.schema.metadata or {}).items()
            if k != b"ARROW:schema"
        }
    except (OSError, UnicodeDecodeError, pyarrow.ArrowException) as error:
        raise unreadable(path, "Parquet", error) from error
    values = {name: table[name] for name in _distinct(path, names)}
    return Columns(path, values, stored, lambda row: f"row {row + 1}", len(table))


def _plain(column: Any) -> Any:
    """Categories as what they stand for, every kind of text as one, dates as times."""
    from pyarrow import types

    kind = column.type
    if types.is_dictionary(kind):
        return _plain(column.cast(kind.value_type))
    if types.is_large_string(kind) or str(kind) in ("string_view", "binary", "large_binary"):
        return column.cast("string")
    return column.cast("timestamp[s]") if types.is_date(kind) else column


def _normal(name: str) -> str:
    return "_".join(name.lower().replace("-", " ").replace("_", " ").split())


def _distinct(path: Path, names: Sequence[str]) -> list[str]:
    twice = len(set(names)) < len(names)
    require(not twice, f"the columns of {path}", ", ".join(names), "ones with different names")
    return list(names)


def _csv(path: Path) -> Columns:
    import pyarrow
    from pyarrow import csv as arrow

    try:
        _require_text(path)
        skipped, header = _header(path)
    except (OSError, UnicodeDecodeError) as error:
        raise unreadable(path, "CSV", error) from error
    delimiter = max(_DELIMITERS, key=header.count)
    (heads,) = csv.reader([header], delimiter=delimiter, skipinitialspace=True)
    names = _distinct(path, [head.strip() for head in heads])
    comments: list[str] = []
    broken: list[str] = []

    def handle(row: Any) -> str:
        (comments if row.text.lstrip().startswith("#") else broken).append(row.text)
        return "skip"

    try:
        table = arrow.read_csv(
            path,
            read_options=arrow.ReadOptions(column_names=names, skip_rows=skipped + 1),
            parse_options=arrow.ParseOptions(delimiter=delimiter, invalid_row_handler=handle),
            convert_options=arrow.ConvertOptions(
                column_types=dict.fromkeys(names, pyarrow.string()), strings_can_be_null=False
            ),
        )
    except (OSError, pyarrow.ArrowException) as error:
        raise unreadable(path, "CSV", error) from error

    def place(row: int) -> str:
        return f"line {_line(path, skipped + 1, len(names), delimiter, row)}"

    if broken:
        line = _line_of(path, broken[0])
        right = f"{len(names)} values, as the header has"
        require(False, f"line {line} of {path}", broken[0], right)
    with open(path, encoding="utf-8-sig") as file:
        comments = list(islice(file, skipped)) + comments
    values = {name: table[name] for name in names}
    return Columns(path, values, _notes(comments), place, len(table))


def _require_text(path: Path) -> None:
    """Raise a `UnicodeDecodeError` unless it is UTF-8: pyarrow's handler of rows could only print it."""
    decode = getincrementaldecoder("utf-8")().decode
    with open(path, "rb") as file:
        while block := file.read(1 << 20):
            decode(block)
        decode(b"", True)


def _header(path: Path) -> tuple[int, str]:
    """How many lines come before the header, and the header."""
    with open(path, encoding="utf-8-sig") as file:
        for number, line in enumerate(file):
            if line.strip() and not line.lstrip().startswith("#"):
                return number, line.rstrip("\r\n")
    raise InputError(f"{path} is empty; it must have a header and a line for each entry")


def _notes(comments: Sequence[str]) -> dict[str, str]:
    pairs = [word.partition("=") for text in comments for word in text.lstrip("# ").split()]
    return {key: value for key, equals, value in pairs if equals}


def _line(path: Path, skip: int, width: int, delimiter: str, row: int) -> int:
    """The line of a row: pyarrow drops comments and blank lines without a count."""
    seen = -1
    with open(path, encoding="utf-8-sig") as file:
        for number, line in enumerate(file, start=1):
            data = line.strip() and (not line.startswith("#") or line.count(delimiter) == width - 1)
            if number > skip and data:
                seen += 1
                if seen == row:
                    return number
    return skip + 1 + row


def _line_of(path: Path, text: str) -> int:
    with open(path, encoding="utf-8-sig") as file:
        return next((k for k, line in enumerate(file, 1) if line.rstrip("\r\n") == text), 0)


def unreadable(path: Path, form: str, error: Exception) -> InputError:
    reason = getattr(error, "strerror", None) or str(error).partition("\n")[0]
    return InputError(f"{path} cannot be read as {form}: {reason}")
