"""Cells that train together: who they are is kept in their checkpoints, and they go on together.

Together and alone differ in last bits. So that a run that was killed is the same to the byte, cells
go on in the company that they had, from a round that all of them have kept: whoever ends before the
others does so only after these have been kept without it.
"""

import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from turnout import checkpoint
from turnout.algorithm import Zeros
from turnout.checkpoint import Checkpoint

log = logging.getLogger("turnout")

TOGETHER = "together"
"""The note of a checkpoint that names the company."""


class Kept(NamedTuple):
    """Where a cell's checkpoints are, and its name among others."""

    name: str
    folder: Path
    made: Callable[[str], Zeros]


def resumed(cells: Sequence[Kept]) -> list[Checkpoint | None] | None:
    """What each cell of a company goes on from; None if they cannot go on together."""
    found = [checkpoint.load(cell.folder, log.warning, cell.made) for cell in cells]
    if len(cells) == 1:
        return found
    names = [cell.name for cell in cells]
    if any(each is not None and each.notes.get(TOGETHER) != names for each in found):
        return None
    # A kill may have come when only some of them had been kept.
    while len({_rounds(each) for each in found}) > 1:
        last = min(map(_rounds, found))
        found = [checkpoint.load(cell.folder, log.warning, cell.made, last) for cell in cells]
    for cell in cells:
        checkpoint.drop(cell.folder, after=_rounds(found[0]))
    return found


def _rounds(found: Checkpoint | None) -> int:
    return -1 if found is None else found.round
