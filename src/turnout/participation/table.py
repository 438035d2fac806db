"""Columns of numbers from a CSV file, with the line of each row for messages about it."""

import csv
import math
from collections.abc import Iterable
from os import PathLike
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from turnout.errors import InputError, require

Path = str | PathLike[str]
_MOST = 100_000_000


class Table(NamedTuple):
    """What was read: `columns[name][k]` stands on line `lines[k]` of the file."""

    path: Path
    lines: NDArray[np.int64]
    columns: dict[str, NDArray[np.float64]]
    notes: dict[str, str]
    """`key=value` pairs of comment lines, which start with #."""
    unit: str = "line"

    def field(self, name: str, row: int) -> str:
        """How a message names one value."""
        return f"{name} in {self.path}, {self.unit} {self.lines[row]},"

    def require(self, holds: NDArray[np.bool_], name: str, right: str) -> None:
        """An `InputError` about the first row of column `name` that does not hold, if any."""
        wrong = np.flatnonzero(~holds)
        if len(wrong):
            row = int(wrong[0])
            require(False, self.field(name, row), _plain(self.columns[name][row]), right)

    def rows(self, name: str) -> NDArray[np.int64]:
        """A column of clients or rounds, counted from 0.

        The limit is there for the ids of devices, which as rows would ask for terabytes.
        """
        column = self.columns[name]
        holds = (column >= 0) & (column < _MOST) & (column == np.floor(column))
        self.require(holds, name, f"a {name}'s number, from 0 to {_MOST - 1:,}")
        return column.astype(np.int64)


def read_table(path: Path, columns: Iterable[str], optional: Iterable[str] = ()) -> Table:
    """Read finite numbers in the named columns; other columns, blank and # lines are skipped."""
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            return _parse(path, file, list(columns), list(optional))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"{path} cannot be read as CSV: {reason}") from error


def _parse(path: Path, file: Iterable[str], needed: list[str], optional: list[str]) -> Table:
    reader = csv.reader(file)
    names: list[str] | None = None
    places: dict[str, int] = {}
    notes: dict[str, str] = {}
    lines: list[int] = []
    rows: list[list[float]] = []
    for row in reader:
        if not row or row[0].lstrip().startswith("#"):
            pairs = [word.partition("=") for word in ",".join(row).lstrip("# ").split()]
            notes.update((key, value) for key, equals, value in pairs if equals)
        elif names is None:
            names = [name.strip() for name in row]
            for name in needed:
                right = f"one with a column {name!r}"
                require(name in names, f"the header of {path}", ", ".join(names), right)
            places = {name: names.index(name) for name in needed + optional if name in names}
        elif any(cell.strip() for cell in row):
            line = reader.line_num
            rows.append([_number(path, line, name, row, k) for name, k in places.items()])
            lines.append(line)
    right = "the names of the columns: " + ", ".join(needed)
    require(names is not None, f"the header of {path}", "", right)
    table = np.array(rows, dtype=np.float64).reshape(len(rows), len(places))
    columns = {name: table[:, k] for k, name in enumerate(places)}
    return Table(path, np.array(lines, dtype=np.int64), columns, notes)


def _number(path: Path, line: int, name: str, row: list[str], place: int) -> float:
    text = row[place].strip() if place < len(row) else ""
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        require(False, f"{name} in {path}, line {line},", text, "a finite number")
    return number


def _plain(number: float) -> float | int:
    return int(number) if float(number).is_integer() else float(number)
