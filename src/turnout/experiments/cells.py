"""A cell: one algorithm with one seed, played to the end and written to its folder."""

import csv
import io
import json
import logging
import shutil
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import torch
from safetensors.torch import save

from turnout import checkpoint
from turnout import round as protocol
from turnout.algorithm import Algorithm
from turnout.costs import costs
from turnout.evaluate import Metrics
from turnout.experiments.config import RunSection
from turnout.experiments.files import json_line, json_text, lines, replace, settle, write
from turnout.experiments.heavy import Heavy
from turnout.experiments.interrupt import Asked, Interrupted
from turnout.experiments.lock import locked
from turnout.experiments.pace import Pace
from turnout.experiments.world import Setting
from turnout.participation import Log, export
from turnout.ranks import Ranks
from turnout.simulator import (
    Cadence,
    Federation,
    Round,
    Simulation,
    begin,
    client_tables,
    made,
    play,
    restore,
)
from turnout.tables import Tables
from turnout.tracking import About, follow

log = logging.getLogger("turnout")

CHECKPOINTS = "checkpoints"

Watch = Callable[[Round, Metrics | None], None]

DTYPES = {"float32": torch.float32, "float64": torch.float64}
PATIENCE = 30.0
"""Seconds to wait for the last worker process of a run that was killed."""
LOG_ENTRIES = 1_000_000_000
"""Participation is replayed for the log up to so many rounds × clients, then cut off."""


class Place(NamedTuple):
    """Which cell it is, and where it is kept."""

    label: str
    seed: int
    folder: Path

    @property
    def name(self) -> str:
        return f"{self.label}, seed {self.seed}"


class Cell(NamedTuple):
    label: str
    algorithm: Algorithm
    seed: int
    setting: Setting
    folder: Path

    @property
    def place(self) -> Place:
        return Place(self.label, self.seed, self.folder)


def tables(run: RunSection, folder: Path | None) -> Tables:
    """Large tables are files in this folder."""
    return Tables(int(run.table_limit * 1e9), folder)


def simulation_of(
    cell: Cell,
    run: RunSection,
    engine: str | None = None,
    rounds: int | None = None,
    ranks: Ranks = Ranks(),
) -> Simulation:
    """What the cell simulates; an `InputError` if its parts do not go together.

    With `rounds`, engine "auto" tries engines if they are enough to repay it.
    """
    world, model, augment = cell.setting
    return Simulation.of(
        cell.algorithm,
        world,
        model,
        cell.seed,
        engine or run.engine,
        DTYPES[run.dtype],
        augment,
        rounds,
        run.precision or "full",
        tables=tables(run, cell.folder),
        ranks=ranks,
    )


def run_cell(
    cell: Cell,
    run: RunSection,
    watch: Watch | None = None,
    asked: Asked | None = None,
    resume: bool = False,
    ranks: Ranks = Ranks(),
) -> None:
    """Play the rounds that are left, writing metrics as they come and the rest at the end.

    With `resume`, a cell that has ended stays as it is and one that has not goes on from its newest
    checkpoint, to the same metrics and the same model as if nothing had happened. When it is
    `asked` to stop, the round is finished and kept, and the cell is `Interrupted`. Of several `ranks`
    the first one writes, and the others only read, checkpoints.
    """
    ranks.once(lambda: cell.folder.mkdir(parents=True, exist_ok=True))
    with locked(cell.folder, PATIENCE) if ranks.first else nullcontext():
        if not ranks.once(lambda: resume and _status_of(cell.folder) in ("done", "diverged")):
            _play(cell, run, watch, asked, resume, ranks)
        if ranks.first:
            # Nothing is left to resume, perhaps since an earlier process that was killed just here.
            shutil.rmtree(cell.folder / CHECKPOINTS, ignore_errors=True)


def _play(
    cell: Cell,
    run: RunSection,
    watch: Watch | None,
    asked: Asked | None,
    resume: bool,
    ranks: Ranks,
) -> None:
    place = cell.folder / CHECKPOINTS
    zeros = made(ranks.zeros(tables(run, cell.folder).zeros))
    found = checkpoint.load(place, log.warning, zeros) if resume else None
    at: dict[str, Any] = found.notes if found else {}
    # With the engine and the threads of then: others would differ in the last bits.
    torch.set_num_threads(at.get("threads", torch.get_num_threads()))
    simulation = simulation_of(cell, run, at.get("engine"), run.rounds, ranks)
    engine, why = simulation.chosen.name, at.get("why", simulation.chosen.why)
    federation = Federation(
        simulation,
        restore(simulation, found.tree) if found else begin(simulation),
        Cadence(run.evaluate_every, run.clients_every or run.evaluate_every, run.rounds),
        simulation.evaluator(run.client_samples),
        looking=ranks.first,
        seconds=at.get("seconds", 0.0),
        evaluating=at.get("evaluating", 0.0),
    )
    progress = federation.progress
    about = {"algorithm": cell.label, "method": repr(cell.algorithm), "seed": cell.seed}
    about |= {
        "engine": engine,
        "why": why,
        "memory": cell.algorithm.memory is not None,
        "rounds": run.rounds,
    }
    about |= {"costs": costs(cell.algorithm, progress.server)._asdict()}
    if ranks.first:
        _status(cell, about, "running", federation.rounds)
    pace = Pace(run.checkpoint_seconds, checkpoint.size(progress))
    heavy = Heavy(cell.place.name)
    with (
        _lines(cell.folder / "metrics.jsonl", at.get("metrics", 0), ranks) as metrics_file,
        _lines(cell.folder / "timing.jsonl", at.get("timing", 0), ranks) as timing_file,
        follow(
            run.track if ranks.first else [],
            _followed(cell, run, about, federation.rounds),
        ) as following,
    ):

        def write_down() -> None:
            notes = {
                "metrics": settle(metrics_file),
                "timing": settle(timing_file),
                "seconds": federation.seconds,
                "evaluating": federation.evaluating,
                "engine": engine,
                "why": why,
                "threads": torch.get_num_threads(),
            }
            names = client_tables(simulation)
            checkpoint.save(place, federation.rounds, progress, notes, progress.delivered, names)

        def keep() -> None:
            ranks.showing([*progress.kept.values(), *progress.server.memory.values()], write_down)

        def before() -> None:
            stop, due = ranks.agree(asked is not None and asked.stop, pace.due())
            if stop:
                keep()
                raise Interrupted(f"{cell.place.name}, round {federation.rounds}")
            if due:
                pace.keep(keep)

        def after(federation: Federation, happened: Round, metrics: Metrics | None) -> None:
            heavy.note(happened, len(progress.delivered))
            if metrics is not None:
                _append(metrics_file, metrics)
                timing = {"seconds": federation.seconds, "evaluating": federation.evaluating}
                _append(timing_file, {"round": metrics["round"], **timing})
                following(metrics)
            if watch is not None:
                watch(happened, metrics)

        play([federation], before, after)
        if federation.diverged is not None:
            following.ending = "diverged"
    if ranks.first:
        done = run.rounds if federation.diverged is None else federation.diverged.round
        _keep(cell, federation, done)
        _status(cell, about, "done" if federation.diverged is None else "diverged", done)


def _followed(cell: Cell, run: RunSection, about: dict[str, Any], after: int) -> About:
    """What trackers are told of the cell."""
    world, model, augment = cell.setting
    settings = {
        **{key: about[key] for key in ("method", "seed", "engine", "rounds")},
        "dtype": run.dtype,
        "data": repr(world.train),
        "participation": repr(world.participation),
        "model": repr(model),
        "augmentation": augment is not None,
        "folder": str(cell.folder),
    }
    return About(run.name, cell.label, cell.seed, cell.folder, settings, after)


def _lines(path: Path, position: int, ranks: Ranks) -> AbstractContextManager[BinaryIO]:
    """The file, or nothing to write to where another rank writes."""
    return lines(path, position) if ranks.first else nullcontext(io.BytesIO())


def _append(file: BinaryIO, values: dict[str, Any]) -> None:
    file.write((json_line(values) + "\n").encode())
    file.flush()


def _status(cell: Cell, about: dict[str, Any], status: str, round: int) -> None:
    write(cell.folder / "status.json", json_text({**about, "status": status, "round": round}))


def _status_of(folder: Path) -> str | None:
    """None also where it cannot be told: then the cell is played, to what it was."""
    try:
        return str(json.loads((folder / "status.json").read_bytes())["status"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None


def _keep(cell: Cell, federation: Federation, rounds: int) -> None:
    """What there is at the end: model, clients, classes, and who was there."""
    training = federation.simulation.training
    write(
        cell.folder / "model.safetensors",
        save(training.layout.state_dict(federation.x, training.model.module)),
    )
    write(cell.folder / "clients.csv", _csv(federation.client_table()))
    if training.model.classification:
        write(cell.folder / "classes.csv", _csv(_class_table(federation)))
    if rounds:
        log = participation_log(federation.simulation, rounds)
        replace(cell.folder / "participation.parquet", lambda draft: export(log, draft))


def _class_table(federation: Federation) -> list[dict[str, Any]]:
    world = federation.simulation.world
    accuracy = federation.evaluator.classes(federation.x)
    labels = world.train.targets.numpy()
    came = np.repeat(federation.progress.delivered > 0, np.diff(world.offsets))
    held, seen = (
        np.bincount(labels[rows], minlength=len(accuracy)) for rows in (slice(None), came)
    )
    return [
        {"class": c, "samples": int(held[c]), "samples_seen": int(seen[c]), "accuracy": value}
        for c, value in enumerate(accuracy)
    ]


def participation_log(simulation: Simulation, rounds: int) -> Log:
    """Who was asked and who delivered, replayed: both are functions of the seed.

    So nothing needs to be kept while the cell runs, and a resumed one has the same log. In a round
    that the server trains by itself nobody is asked.
    """
    world = simulation.world
    rounds = max(1, min(rounds, LOG_ENTRIES // world.clients))
    who, when, arrived, asked = [], [], [], 0
    selection, seed = simulation.algorithm.selection, simulation.training.seed
    known = {} if selection is None else selection.init(world.clients)
    shares = None if world.shares is None else world.shares * world.clients
    for t, came in enumerate(world.participation.rounds(rounds)):
        if protocol.asks_clients(simulation.algorithm, seed, t):
            cohort = came.cohort
            if selection is not None:
                cohort, known = protocol.chosen(selection, known, asked, cohort, shares, seed)
            asked += 1
            who.append(cohort)
            when.append(np.full(len(cohort), t))
            arrived.append(np.isin(cohort, came.delivered, assume_unique=True))
    none = np.zeros(0, dtype=np.int64)
    return Log(
        rounds,
        world.clients,
        np.concatenate([none, *when]),
        np.concatenate([none, *who]),
        np.concatenate([none.astype(bool), *arrived]),
    )


def _csv(rows: Sequence[dict[str, Any]]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows({k: "" if v is None else v for k, v in row.items()} for row in rows)
    return text.getvalue()
