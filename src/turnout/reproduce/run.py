"""Play all cells of an item: what is known is read, the rest is played, and progress is told."""

import logging
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import NamedTuple

from turnout.errors import WorkerError, WriteError
from turnout.experiments import jobs as processes
from turnout.experiments.interrupt import Asked, Interrupted
from turnout.reproduce.cache import kept, obtain_all, recall, sweep
from turnout.reproduce.grid import Cell, Labels
from turnout.reproduce.groups import grouped
from turnout.reproduce.play import Record, Tell

log = logging.getLogger("turnout")


class Played(NamedTuple):
    """A cell and what came of it."""

    point: Labels
    seed: int
    record: Record


class Told(NamedTuple):
    """What is said after each cell."""

    cell: Cell
    record: Record
    done: int
    total: int
    left: float
    """Seconds until the last cell is done, if the others take as long by the round."""
    together: int = 1
    """How many trained together, this one included."""


def play_all(
    cells: list[Cell],
    folder: Path,
    jobs: int = 1,
    told: Callable[[Told], None] | None = None,
    tell: Tell | None = None,
    trust: bool = False,
    asked: Asked | None = None,
) -> list[Played]:
    """Results of all cells, in their order; `trust` takes those that other code has made."""
    found = {cell.key: recall(cell, folder, trust) for cell in cells}
    other = {cell.key for cell in cells if found[cell.key] is None and kept(cell, folder)}
    if other:
        log.warning(
            "%d of %d results are of code that has changed since, and are made anew; --trust takes "
            "them as they are",
            len(other),
            len(found),
        )
    missing = list({cell.key: cell for cell in cells if found[cell.key] is None}.values())
    # Cells that go on from one warm-up share it: it is played first, once.
    starts = {cell.after.key: cell.after for cell in missing if cell.after is not None}
    rounds = {cell.key: cell.rounds for cell in [*starts.values(), *missing]}
    total, began, played = len(rounds) + len(found) - len(missing), perf_counter(), 0
    done = total - len(rounds)

    def pulse(group: list[Cell], *where: int) -> None:
        if tell is not None:
            tell(*where)

    every = [cell.after for cell in cells if cell.after is not None]
    stages = (every, starts.keys()), (cells, [cell.key for cell in missing])
    for stage, wanted in stages:
        work, groups = _Playing(folder, trust), grouped(stage, wanted)
        try:
            for group, records in processes.play(work, groups, jobs, pulse, asked):
                for cell, record in zip(group, records, strict=True):
                    found[cell.key] = record
                    done, played = done + 1, played + rounds.pop(cell.key)
                    left = (perf_counter() - began) / played * sum(rounds.values())
                    if told is not None:
                        told(Told(cell, record, done, total, left, len(group)))
        except (Interrupted, WorkerError) as stopped:
            sentence = f"{stopped}; all is kept, and the same command goes on with it"
            raise type(stopped)(sentence) from None
        except KeyboardInterrupt:
            sentence = "once, in mid-round; the same command goes on from the last checkpoint"
            raise Interrupted(sentence) from None
        except WriteError as error:
            sentence = f"{error}; with that mended the same command goes on"
            raise WriteError(sentence) from error
        except OSError as error:
            raise WriteError(
                f"{error.filename or folder} cannot be written or read: {error.strerror or error}; what "
                "there was is intact, and with that mended the same command goes on"
            ) from error
    sweep(cells, folder)
    return [Played(cell.point, cell.seed, _known(found[cell.key])) for cell in cells]


def _known(record: Record | None) -> Record:
    assert record is not None  # all cells have been played
    return record


class _Playing(NamedTuple):
    """What is done with cells that train together: the work of `experiments.jobs`."""

    folder: Path
    trust: bool

    def name(self, group: list[Cell]) -> str:
        return " and ".join(cell.name for cell in group)

    def play(
        self, group: list[Cell], tell: processes.Tell, asked: Asked, again: bool
    ) -> list[Record]:
        return obtain_all(group, self.folder, tell, self.trust, asked)
