"""An experiment from its configuration to its run directory."""

from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import torch

from turnout.evaluate import Metrics
from turnout.experiments.cells import Cell, run_cell, simulation_of
from turnout.experiments.config import Config
from turnout.experiments.directory import CONFIG, cell_folders, create, describe, reopen
from turnout.experiments.files import json_text, write
from turnout.experiments.interrupt import Asked, Interrupted
from turnout.experiments.lock import locked
from turnout.experiments.methods import algorithm, methods
from turnout.experiments.resolved import resolved
from turnout.experiments.results import Results, read_results
from turnout.experiments.summary import Summary, as_json, summarise
from turnout.experiments.table import as_csv, markdown
from turnout.experiments.world import settings
from turnout.simulator import Round

Watch = Callable[[Cell, Round, Metrics | None], None]


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
) -> Outcome:
    """Run every cell and write everything; a diverging cell does not stop the others.

    Nothing is written before the first seed's cells have all been found to be sound. With `resume`
    the run directory `out` goes on where it was, or begins if it has not.
    """
    if config.run.threads is not None:
        torch.set_num_threads(config.run.threads)
    worlds = cells(config)
    first = next(worlds)  # a configuration has at least one seed
    for cell in first:
        simulation_of(cell, config.run)
    table = resolved(config)
    folder = reopen(out, table) if resume else create(out, config.run.name)
    with locked(folder):
        if not (folder / CONFIG).exists():
            describe(folder, table)
        for cell in chain(first, chain.from_iterable(worlds)):
            placed = cell._replace(folder=folder / cell.folder)
            try:
                run_cell(placed, config.run, _told(placed, watch), asked, resume)
            except Interrupted as stopped:
                again = f"turnout run {folder / CONFIG} --out {folder} --resume"
                raise Interrupted(f"{stopped}; all is kept, and this goes on: {again}") from None
        return finish(folder, config.run.plots)


def cells(config: Config) -> Iterator[list[Cell]]:
    """The cells of each seed in turn; folders are relative to the run directory."""
    made = methods(config)
    folders = cell_folders(made)
    for seed, world in zip(config.run.seeds, settings(config), strict=True):
        rates = world.world.participation.rates
        yield [
            Cell(label, algorithm(method, rates), seed, world, folders[label] / f"seed-{seed}")
            for label, method in made.items()
        ]


def _told(cell: Cell, watch: Watch | None) -> Callable[[Round, Metrics | None], None] | None:
    if watch is None:
        return None
    return lambda happened, metrics: watch(cell, happened, metrics)


def finish(folder: Path, plots: bool = True) -> Outcome:
    """The tables and plots of a run directory, from what its cells have written."""
    results = read_results(folder)
    summary = summarise(results)
    write(folder / "summary.json", json_text(as_json(summary)))
    write(folder / "summary.csv", as_csv(summary))
    write(folder / "summary.md", markdown(summary))
    if not plots:
        return Outcome(results, summary, [])
    # Imported at the end: the first round should not have to wait for matplotlib.
    from turnout.experiments.plots import draw

    return Outcome(results, summary, draw(results, folder / "plots"))
