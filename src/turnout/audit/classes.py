"""Which classes clients hold: counts from a file, matched to the clients of a log."""

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from turnout.audit.columns import CLIENT, Columns, read_columns
from turnout.audit.history import History, with_unseen
from turnout.audit.values import whole
from turnout.errors import InputError, require

_CLASS, _COUNT = ("class", "label", "target"), ("count", "samples", "n", "number")


@dataclass(frozen=True, eq=False)
class ClassCounts:
    counts: NDArray[np.int64]
    """[clients, classes]"""
    names: tuple[str, ...]

    @property
    def mix(self) -> NDArray[np.float64]:
        """Shares of the classes in each client's data; rows of clients without data are 0."""
        shares: NDArray[np.float64] = self.counts / np.maximum(self.counts.sum(1, keepdims=True), 1)
        return shares


def read_classes(path: str | Path, history: History) -> tuple[ClassCounts, History]:
    """From CSV or Parquet: client, class, count in a line each; or client and a column a class.

    Who has data exists, so clients that only this file knows join the history as never seen.
    """
    file = Path(path)
    if not os.path.isfile(file):  # false for a name too long, too
        raise InputError(f"{file} cannot be read: there is no such file")
    columns = read_columns(file)
    client = columns.find(CLIENT)
    if client is None:
        raise InputError(f"{file} has no column 'client'; it must say whose the counts are")
    rows, history = _rows(columns, client, history)
    label, count = columns.find(_CLASS), columns.find(_COUNT)
    if label is not None and count is not None:
        words = np.array([str(v).strip() for v in columns.column(label).to_pylist()])
        names, which = np.unique(words, return_inverse=True)
        if all(name.isdecimal() for name in names):
            order = np.argsort(names.astype(np.int64), kind="stable")
            rank = np.empty(len(order), dtype=np.int64)
            rank[order] = np.arange(len(order))
            names, which = names[order], rank[which]
        table = np.zeros((history.clients, len(names)), dtype=np.int64)
        np.add.at(table, (rows, which), whole(columns, count))
        return _checked(file, table, [str(name) for name in names]), history
    kinds = [name for name in columns.values if name != client]
    table = np.zeros((history.clients, len(kinds)), dtype=np.int64)
    for k, name in enumerate(kinds):
        np.add.at(table[:, k], rows, whole(columns, name))
    return _checked(file, table, kinds), history


def _checked(file: Path, table: NDArray[np.int64], names: list[str]) -> ClassCounts:
    require(bool(names), f"the number of classes in {file}", 0, "at least 1")
    require(int(table.sum()) > 0, f"the number of samples in {file}", 0, "at least 1")
    return ClassCounts(table, tuple(names))


def _rows(columns: Columns, client: str, history: History) -> tuple[NDArray[np.int64], History]:
    words = [str(value).strip() for value in columns.column(client).to_pylist()]
    numbers = [str(n) for n in range(history.clients)]
    known = {name: row for row, name in enumerate(history.names or numbers)}
    fresh = sorted({word for word in words if word not in known})
    if history.names is None:
        # Numbers must go on where the log's end: one far away is rather a mistake than a client.
        fresh.sort(key=lambda word: (len(word), word))
        due = [str(history.clients + k) for k in range(len(fresh))]
        right = f"a client's number, from 0 to {history.clients - 1} in the log, or the next one"
        wrong = set(fresh) - set(due)
    else:
        right = "a client of the log, as some of this file's must be"
        wrong = set(words) if len(fresh) == len(set(words)) else set()
    columns.check(client, np.array([word not in wrong for word in words], dtype=bool), right)
    if fresh:
        known |= {word: row for row, word in enumerate(fresh, start=len(known))}
        history = with_unseen(history, fresh)
    return np.array([known[word] for word in words], dtype=np.int64), history
