"""Columns of a CSV or Parquet file, read fast, with the line of a row for messages about it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from turnout.errors import InputError, require

_DELIMITERS = ",;\t"


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
        """The first of these columns that there is."""
        return next((name for name in names if name in self.values), None)

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
    except (OSError, pyarrow.ArrowException) as error:
        raise unreadable(path, "Parquet", error) from error
    stored = {
        k.decode(): v.decode()
        for k, v in (table.schema.metadata or {}).items()
        if k != b"ARROW:schema"
    }
    values = {name: table[name] for name in table.column_names}
    for name, column in values.items():
        if column.null_count:
            row = int(np.flatnonzero(column.is_null().to_numpy())[0])
            if name in ("answered_at",):
                continue
            require(False, f"{name} in {path}, row {row + 1},", None, "a value")
    return Columns(path, values, stored, lambda row: f"row {row + 1}", len(table))


def _csv(path: Path) -> Columns:
    import pyarrow
    from pyarrow import csv

    try:
        skipped, header = _header(path)
    except (OSError, UnicodeDecodeError) as error:
        raise unreadable(path, "CSV", error) from error
    delimiter = max(_DELIMITERS, key=header.count)
    names = [name.strip().strip('"') for name in header.split(delimiter)]
    comments: list[str] = []
    broken: list[str] = []

    def handle(row: Any) -> str:
        (comments if row.text.lstrip().startswith("#") else broken).append(row.text)
        return "skip"

    try:
        table = csv.read_csv(
            path,
            read_options=csv.ReadOptions(column_names=names, skip_rows=skipped + 1),
            parse_options=csv.ParseOptions(delimiter=delimiter, invalid_row_handler=handle),
            convert_options=csv.ConvertOptions(
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
