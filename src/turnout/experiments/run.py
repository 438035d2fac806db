"""An experiment from its configuration to its run directory."""

from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any, NamedTuple

import torch

from turnout import tracking
from turnout.errors import WorkerError, WriteError, require
from turnout.evaluate import Metrics
from turnout.experiments import jobs as processes
from turnout.experiments.cells import Place, run_cells, simulation_of
from turnout.experiments.config import Config
from turnout.experiments.directory import CONFIG, create, describe, reopen, threads_of
from turnout.experiments.files import json_text, write
from turnout.experiments.interrupt import Asked, Interrupted
from turnout.experiments.lock import locked
from turnout.experiments.plan import Cells
from turnout.experiments.resolved import resolved
from turnout.experiments.results import Results, read_results
from turnout.experiments.summary import Summary, as_json, summarise
from turnout.experiments.table import as_csv, markdown
from turnout.ranks import Ranks, found
from turnout.simulator import Round
from turnout.together import room

Watch = Callable[[Place, Round, Metrics | None], None]


class Outcome(NamedTuple):
    results: Results
    summary: Summary
    plots: list[Path]

    @property
    def failures(self) -> list[str]:
        """A sentence for each cell that diverged."""
        rounds = self.results.config.run.rounds
        return [
            f"{cell.label} diverged in round {cell.round + 1} of {rounds} (seed {cell.seed}): the model "
            f"is no longer finite; what it had is kept in {cell.folder}"
            for cell in self.results.cells
            if cell.status == "diverged"
        ]


def run_experiment(
    config: Config,
    out: Path | None = None,
    watch: Watch | None = None,
    asked: Asked | None = None,
    resume: bool = False,
    jobs: int = 1,
    planned: Callable[[list[list[Place]]], None] | None = None,
) -> Outcome:
    """Run every cell and write everything; a diverging cell does not stop the others.

    Nothing is written before the first seed's cells have all been found to be sound. With `resume`
    the run directory `out` goes on where it was, or begins if it has not. Small cells that differ in
    seeds or step sizes only train together; `planned` is told who, in the order in which they will
    be played. Up to `jobs` cells, or groups of such cells, are played side by side, each in a
    process; what comes out does not depend on it. Under torchrun all ranks play each cell together,
    and the first one writes.
    """
    require(jobs >= 1, "jobs", jobs, "at least 1")
    if config.run.threads is not None:
        torch.set_num_threads(config.run.threads)
    built, ranks, first = Cells(config), found(), config.run.seeds[0]
    rooms = {
        cell.label: room(simulation_of(cell, config.run), config.run.rounds)
        for cell in built.of(first)
    }
    if ranks.count > 1 or config.run.track:  # Trackers know of one run at a time.
        rooms = dict.fromkeys(rooms, 1)
    groups = built.groups(rooms)
    built.worlds = max(len({place.seed for place in group}) for group in groups)
    tracking.check(config.run.track)
    table = resolved(config)
    alone = jobs == 1 or ranks.count == 1
    require(
        alone, "jobs", jobs, f"1 under torchrun, whose {ranks.count} ranks are processes already"
    )
    folder = ranks.once(
        lambda: reopen(out, table) if resume else create(out, config.run.name),
    )
    again = f"turnout run {folder / CONFIG} --out {folder} --resume"
    with locked(folder) if ranks.first else nullcontext():
        if not ranks.once(lambda: (folder / CONFIG).exists()):
            ranks.once(lambda: describe(folder, table))
        elif config.run.threads is None:
            # As many as then, for cells that have not begun, too: others would change last bits.
            torch.set_num_threads(threads_of(folder) or torch.get_num_threads())
        if ranks.first:
            tracking.prepare(config.run.track, config.run.name)
        work = _Playing(built, folder, resume, ranks)

        def tell(group: list[Place], *what: Any) -> None:
            if watch is not None:
                watch(*what)

        if planned is not None:
            planned(groups)
        try:
            for _ in processes.play(work, groups, jobs, tell if watch else None, asked):
                pass
            done: list[Outcome] = []
            ranks.once(lambda: done.append(finish(folder, config.run.plots)))
            return done[0] if done else _outcome(read_results(folder))
        except (Interrupted, WorkerError) as stopped:
            sentence = f"{stopped}; all is kept, and this goes on: {again}"
            raise type(stopped)(sentence) from None
        except KeyboardInterrupt:
            sentence = f"once, in mid-round; the last checkpoint is kept, and this goes on: {again}"
            raise Interrupted(sentence) from None
        except WriteError as error:
            raise WriteError(f"{error}; with that mended this goes on: {again}") from error
        except OSError as error:
            where = error.filename or folder
            raise WriteError(
                f"{where} cannot be written or read: {error.strerror or error}; checkpoints are "
                f"intact, and with that mended this goes on: {again}"
            ) from error


class _Playing(NamedTuple):
    """What is done with cells that train together: the work of `experiments.jobs`."""

    cells: Cells
    folder: Path
    resume: bool
    ranks: Ranks = Ranks()

    def name(self, group: list[Place]) -> str:
        return " and ".join(place.name for place in group)

    def play(self, group: list[Place], tell: processes.Tell, asked: Asked, again: bool) -> None:
        found = [
            (place, cell._replace(folder=self.folder / place.folder))
            for place in group
            for cell in self.cells.of(place.seed)
            if cell.label == place.label
        ]
        places = {cell.folder: place for place, cell in found}
        run_cells(
            [cell for _, cell in found],
            self.cells.config.run,
            lambda cell, *what: tell(places[cell.folder], *what),
            asked,
            self.resume or again,
            self.ranks,
        )


def finish(folder: Path, plots: bool = True) -> Outcome:
    """The tables and plots of a run directory, from what its cells have written."""
    results, summary, _ = _outcome(read_results(folder))
    write(folder / "summary.json", json_text(as_json(summary)))
    write(folder / "summary.csv", as_csv(summary))
    write(folder / "summary.md", markdown(summary))
    if not plots:
        return Outcome(results, summary, [])
    # Imported at the end: the first round should not have to wait for matplotlib.
    from turnout.experiments.plots import draw

    return Outcome(results, summary, draw(results, folder / "plots"))


def _outcome(results: Results) -> Outcome:
    return Outcome(results, summarise(results), [])
