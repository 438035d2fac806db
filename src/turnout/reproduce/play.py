"""Play one cell from its configuration to a record: a plain value, which the cache keeps."""

import logging
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file, save

from turnout import checkpoint
from turnout.evaluate import Metrics
from turnout.experiments.cells import DTYPES, tables
from turnout.experiments.config import Config, DataSection
from turnout.experiments.directory import versions
from turnout.experiments.files import json_line, write
from turnout.experiments.interrupt import Asked, Interrupted
from turnout.experiments.methods import Known, algorithm, methods
from turnout.experiments.pace import Pace
from turnout.experiments.world import PROBLEMS, Given, given_data, setting
from turnout.reproduce.grid import Cell, content
from turnout.reproduce.item import METHOD, WARM_UP
from turnout.simulator import (
    Cadence,
    Federation,
    Progress,
    Round,
    Simulation,
    begin,
    client_tables,
    made,
    restore,
)
from turnout.simulator import play as play_rounds

log = logging.getLogger("turnout")

Record = dict[str, Any]
Tell = Callable[[int, int], None]
"""(rounds done, of so many)"""

SAVE_EVERY = 30.0
"""Seconds between checkpoints of a cell that takes longer than that."""
_SMALL = 8
"""Models of so few numbers are recorded whole: the path is what is looked at."""


@lru_cache(maxsize=1)
def _loaded(data: str, seed: int) -> tuple[Given, str]:
    """The data, and a digest that tells one copy of a data set from another."""
    given = given_data(DataSection.model_validate_json(data), seed)
    digest = blake2b(digest_size=8)
    for pool in (given.train, given.test):
        digest.update(pool.inputs.numpy().tobytes())
        digest.update(pool.targets.numpy().tobytes())
    return given, digest.hexdigest()


def _given(config: Config) -> tuple[Given, str]:
    (seed,) = config.run.seeds
    # All seeds and partitions share the data set itself, which is what takes long to load.
    source = config.data
    if source.name not in PROBLEMS:
        source = source.model_copy(update={"partition": None, "auxiliary": None, "seed": None})
    return _loaded(source.model_dump_json(), seed if source.name in PROBLEMS else 0)


def simulation_of(config: Config, folder: Path | None = None) -> Simulation:
    """What the configuration of one method and one seed simulates; large files go to `folder`."""
    (seed,) = config.run.seeds
    world, model, augment = setting(config, seed, _given(config)[0])
    (method,) = methods(config).values()
    built = algorithm(method, Known.of(world))
    run, kind = config.run, DTYPES[config.run.dtype]
    held = tables(run, folder)
    return Simulation.of(built, world, model, seed, run.engine, kind, augment, tables=held)


def play(
    cell: Cell, folder: Path, place: Path, tell: Tell | None = None, asked: Asked | None = None
) -> Record:
    """Play the cell, or what is left of it; its model is kept beside the record, as a start.

    Checkpoints go to `place`.
    """
    found = checkpoint.load(place, log.warning, made(tables(cell.config.run, place).zeros))
    at: dict[str, Any] = found.notes if found else {}
    # With the threads of then: they decide about last bits.
    torch.set_num_threads(at.get("threads", torch.get_num_threads()))
    simulation = simulation_of(cell.config, place)
    progress = restore(simulation, found.tree) if found else _started(simulation, cell, folder)
    run, first = cell.config.run, 0 if cell.after is None else cell.after.rounds
    last = first + run.rounds
    cadence = Cadence(run.evaluate_every, run.clients_every or run.evaluate_every, last)
    federation = Federation(
        simulation,
        progress,
        cadence,
        simulation.evaluator(run.client_samples),
        seconds=at.get("seconds", 0.0),
        evaluating=at.get("evaluating", 0.0),
    )
    metrics: list[Metrics] = at.get("metrics", [])
    small = simulation.training.layout.size <= _SMALL
    if not metrics and small:
        metrics.append({"round": first, "x": federation.x.tolist()})
    pace = Pace(SAVE_EVERY, checkpoint.size(progress))

    def keep() -> None:
        notes = {"metrics": metrics, "threads": torch.get_num_threads()}
        notes |= {"seconds": federation.seconds, "evaluating": federation.evaluating}
        names = client_tables(simulation)
        checkpoint.save(place, federation.rounds, progress, notes, progress.delivered, names)

    def before() -> None:
        if asked is not None and asked.stop:
            keep()
            raise Interrupted(f"{cell.name}, round {federation.rounds}")
        if pace.due():
            pace.keep(keep)

    def after(federation: Federation, happened: Round, scores: Metrics | None) -> None:
        if scores is not None:
            metrics.append(scores | ({"x": federation.x.tolist()} if small else {}))
        if tell is not None:
            tell(federation.rounds - first, run.rounds)

    play_rounds([federation], before, after)
    record = _record(cell, federation) | {"metrics": metrics}
    if cell.point[METHOD] == WARM_UP:
        training = simulation.training
        state = training.layout.state_dict(federation.x, training.model.module)
        write(folder / f"{cell.key}.safetensors", save(state))
    return record


def _started(simulation: Simulation, cell: Cell, folder: Path) -> Progress:
    """The state before the cell's first round: of a new run, or after the warm-up."""
    if cell.after is None:
        return begin(simulation)
    training, rounds = simulation.training, cell.after.rounds
    module = training.model.module
    module.load_state_dict(load_file(folder / f"{cell.after.key}.safetensors"))
    progress = begin(simulation, training.layout.flatten(module).clone())
    # The clock goes on: who shows up, and with which mini-batches, is as if nothing had changed.
    for t in range(rounds):
        _, progress.presence = simulation.world.participation.step(progress.presence, t)
    progress.server = replace(progress.server, round=rounds, client_round=rounds)
    return progress


def _record(cell: Cell, federation: Federation) -> Record:
    simulation, progress = federation.simulation, federation.progress
    world = simulation.world
    record: Record = {
        "key": cell.key,
        "config": content(cell),
        "seed": cell.seed,
        "data": _given(cell.config)[1],
        "engine": type(simulation.engine).__name__.lower(),
        "clients": list(federation.client_table()),
        "versions": versions(),
        "status": "done" if federation.diverged is None else "diverged",
        "round": federation.rounds,
        "seconds": federation.seconds,
        "evaluating": federation.evaluating,
    }
    if not simulation.training.model.classification:
        return record
    counted = world.train.classes or 0
    owner = np.repeat(np.arange(world.clients), np.diff(world.offsets))
    held = np.zeros((world.clients, counted))
    np.add.at(held, (owner, world.train.targets.numpy()), 1)
    accuracy = np.array(
        [a if a is not None else 0.0 for a in federation.evaluator.classes(federation.x)]
    )
    # A client's test data are the test set, mixed as its own data are.
    on_test = held @ accuracy / held.sum(1)
    for row, value in zip(record["clients"], on_test, strict=True):
        row["test_accuracy"] = float(value)
    came = progress.delivered > 0
    record["classes"] = [float(a) for a in accuracy]
    record["classes_covered"] = int((held[came].sum(0) > 0).sum())
    return record


def line(record: Record) -> str:
    return json_line(record) + "\n"
