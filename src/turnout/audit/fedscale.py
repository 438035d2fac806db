"""FedScale's availability traces, a pickle of plain tables, read by a reader that executes nothing.

A pickle can name any function and have it called. These traces need none: dictionaries, lists,
numbers and text are made by the format itself, so every name is refused.
"""

import pickle
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from turnout.audit.sessions import Sessions
from turnout.errors import InputError, require


class _Plain(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> NoReturn:
        raise pickle.UnpicklingError(
            f"it wants to run {module}.{name}, and a trace needs nothing run"
        )

    def persistent_load(self, key: Any) -> NoReturn:
        raise pickle.UnpicklingError("it refers to objects outside the file")


def read_fedscale(path: Path) -> tuple[Sessions, list[str], dict[str, int]]:
    """Sessions, the clients' names, and what was mended."""
    try:
        with open(path, "rb") as file:
            table = _Plain(file).load()
    except InputError:
        raise
    except Exception as error:  # a damaged pickle raises almost anything
        raise InputError(f"{path} is refused as an availability trace: {error}") from error
    right = "a table of clients, each with the lists active and inactive"
    good = isinstance(table, dict) and bool(table) and all(map(_is_client, table.values()))
    require(good, f"the content of {path}", type(table).__name__, right)
    client, start, end = [], [], []
    mends = {"stretches without an end left out": 0, "stretches that end before they start": 0}
    for row, (name, entry) in enumerate(table.items()):
        active, inactive = (_numbers(path, name, entry[key]) for key in ("active", "inactive"))
        pairs = min(len(active), len(inactive))
        mends["stretches without an end left out"] += abs(len(active) - len(inactive))
        backwards = active[:pairs] > inactive[:pairs]
        mends["stretches that end before they start"] += int(backwards.sum())
        start.append(active[:pairs][~backwards])
        end.append(inactive[:pairs][~backwards])
        client.append(np.full(len(start[-1]), row, dtype=np.int64))
    sessions = Sessions(np.concatenate(client), np.concatenate(start), np.concatenate(end))
    return sessions, [str(name) for name in table], mends


def _is_client(entry: Any) -> bool:
    return isinstance(entry, dict) and all(
        isinstance(entry.get(k), list) for k in ("active", "inactive")
    )


def _numbers(path: Path, name: Any, values: list[Any]) -> np.ndarray[Any, np.dtype[np.float64]]:
    good = all(isinstance(value, int | float) and abs(value) < 1e15 for value in values)
    require(good, f"the times of client {name!r} in {path}", "others", "finite numbers of seconds")
    return np.array(values, dtype=np.float64)
