"""Play all cells of an item: what is known is read, the rest is played, and progress is told."""

import logging
import multiprocessing
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from time import perf_counter
from typing import NamedTuple

import torch

from turnout.reproduce.cache import kept, obtain, recall
from turnout.reproduce.grid import Cell, Labels
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


def play_all(
    cells: list[Cell],
    folder: Path,
    workers: int = 1,
    told: Callable[[Told], None] | None = None,
    tell: Tell | None = None,
    trust: bool = False,
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
    for stage in (list(starts.values()), missing):
        for cell, record in _each(stage, folder, workers, tell, trust):
            found[cell.key] = record
            done, played = done + 1, played + rounds.pop(cell.key)
            left = (perf_counter() - began) / played * sum(rounds.values())
            if told is not None:
                told(Told(cell, record, done, total, left))
    return [Played(cell.point, cell.seed, _known(found[cell.key])) for cell in cells]


def _known(record: Record | None) -> Record:
    assert record is not None  # all cells have been played
    return record


def _each(
    cells: Iterable[Cell], folder: Path, workers: int, tell: Tell | None, trust: bool
) -> Iterator[tuple[Cell, Record]]:
    if workers == 1:
        for cell in cells:
            yield cell, obtain(cell, folder, tell, trust)
        return
    threads = max(1, torch.get_num_threads() // workers)
    spawn = multiprocessing.get_context("spawn")  # a forked torch may hang
    with ProcessPoolExecutor(workers, spawn, torch.set_num_threads, (threads,)) as pool:
        jobs = {pool.submit(obtain, cell, folder, None, trust): cell for cell in cells}
        try:
            for job in as_completed(jobs):
                yield jobs[job], job.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
