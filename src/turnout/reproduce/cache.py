"""Records by the content of their configuration: what has been played is not played again.

A record also says which code made it. It is believed only where the code that decides results is
still the same, unless `trust` says that the code has changed in nothing that matters here.
"""

import json
import logging
import math
import shutil
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path

from turnout.experiments.files import DRAFTS, write
from turnout.experiments.interrupt import Asked
from turnout.experiments.lock import locked
from turnout.reproduce.grid import Cell
from turnout.reproduce.play import Record, Seat, Tell, line, play
from turnout.reproduce.source import fingerprint

log = logging.getLogger("turnout")


def recall(cell: Cell, folder: Path, trust: bool = False) -> Record | None:
    """The cell's record, if there is one that can be believed."""
    found = kept(cell, folder)
    return found if found is not None and (trust or found["code"] == fingerprint(cell)) else None


def kept(cell: Cell, folder: Path) -> Record | None:
    """The cell's record, whichever code made it."""
    path = folder / f"{cell.key}.json"
    if not path.exists():
        return None
    try:
        record: Record = {"code": None, **json.loads(path.read_bytes())}
        whole = record["key"] == cell.key and record["status"] in ("done", "diverged")
    except (ValueError, KeyError, TypeError, RecursionError):
        whole = False
    if not whole:
        log.warning("%s is damaged; its cell is played again", path)
        return None
    return record


def obtain(
    cell: Cell,
    folder: Path,
    tell: Tell | None = None,
    trust: bool = False,
    asked: Asked | None = None,
) -> Record:
    """The cell's record, played now if need be; if another process is at it, what that one finds."""
    return obtain_all([cell], folder, tell, trust, asked)[0]


def obtain_all(
    cells: Sequence[Cell],
    folder: Path,
    tell: Tell | None = None,
    trust: bool = False,
    asked: Asked | None = None,
) -> list[Record]:
    """The records of cells that train together, or of one."""
    found = {cell.key: recall(cell, folder, trust) for cell in cells}
    for cell in cells:
        if found[cell.key] is None and cell.after is not None:
            obtain(cell.after, folder, tell, trust, asked)
    # What other code has begun, this code does not finish.
    places = {
        cell.key: folder / f"{cell.key}-{fingerprint(cell)}.partial"
        for cell in cells
        if found[cell.key] is None
    }

    def made(cell: Cell, record: Record) -> None:
        found[cell.key] = {**record, "code": fingerprint(cell)}
        write(folder / f"{cell.key}.json", line(found[cell.key] or {}))

    with ExitStack() as holding:
        for key in sorted(places):  # In one order everywhere, or two could wait for each other.
            places[key].mkdir(parents=True, exist_ok=True)
            holding.enter_context(locked(places[key], patience=math.inf))
        for cell in cells:
            found[cell.key] = found[cell.key] or recall(cell, folder, trust)
        missing = [cell for cell in cells if found[cell.key] is None]
        if missing:
            play([Seat(cell, places[cell.key]) for cell in missing], folder, made, tell, asked)
        sweep(cells, folder)
    return [record for cell in cells if (record := found[cell.key]) is not None]


def sweep(cells: Iterable[Cell], folder: Path) -> None:
    """Remove what was begun of cells that have a record now: a process may have died before it could."""
    keys = {each.key for cell in cells for each in (cell, cell.after) if each is not None}
    for each in folder.glob("*.partial"):
        if each.name.removesuffix(".partial").partition("-")[0] in keys:
            shutil.rmtree(each, ignore_errors=True)
    for draft in folder.glob(DRAFTS):
        if draft.stem.rpartition("-")[2] in keys:
            draft.unlink(missing_ok=True)
