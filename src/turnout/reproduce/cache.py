"""Records by the content of their configuration: what has been played is not played again."""

import json
import shutil
from pathlib import Path

from turnout.experiments.files import write
from turnout.reproduce.grid import Cell
from turnout.reproduce.play import Record, Tell, line, play


def recall(cell: Cell, folder: Path) -> Record | None:
    """The cell's record, if there is one."""
    path = folder / f"{cell.key}.json"
    if not path.exists():
        return None
    record: Record = json.loads(path.read_text(encoding="utf-8"))
    return record


def obtain(cell: Cell, folder: Path, tell: Tell | None = None) -> Record:
    """The cell's record, played now if need be."""
    known = recall(cell, folder)
    if known is not None:
        return known
    folder.mkdir(parents=True, exist_ok=True)
    if cell.after is not None:
        obtain(cell.after, folder, tell)
    record = play(cell, folder, tell)
    write(folder / f"{cell.key}.json", line(record))
    shutil.rmtree(folder / f"{cell.key}.partial", ignore_errors=True)
    return record
