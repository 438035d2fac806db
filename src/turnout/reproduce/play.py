"""Play cells from their configurations to records: plain values, which the cache keeps."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from safetensors.torch import load_file, save

from turnout import checkpoint
from turnout.algorithm import Zeros
from turnout.evaluate import Metrics
from turnout.experiments.cells import DTYPES, tables
from turnout.experiments.company import TOGETHER, Kept, resumed
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
    restore,
)
from turnout.simulator import each as each_alone
from turnout.simulator import made as made_tables
from turnout.simulator import play as play_rounds
from turnout.together import Together

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


class Seat(NamedTuple):
    """A cell and the folder in which its checkpoints are."""

    cell: Cell
    place: Path


def play(
    seats: Sequence[Seat],
    folder: Path,
    made: Callable[[Cell, Record], None],
    tell: Tell | None = None,
    asked: Asked | None = None,
) -> None:
    """Play cells, or what is left of them; several train together.

    `made` is given the record of each as soon as it has ended; models that others start from are
    written to `folder` before.
    """
    found = resumed([Kept(cell.key, place, _made(cell, place)) for cell, place in seats])
    if found is None:
        for seat in seats:
            play([seat], folder, made, tell, asked)
        return
    at = found[0].notes if found[0] else {}
    # With the threads of then: they decide about last bits.
    torch.set_num_threads(at.get("threads", torch.get_num_threads()))
    players = [_seated(seat, kept, folder) for seat, kept in zip(seats, found, strict=True)]
    of = {id(player.federation): player for player in players}
    federations = [player.federation for player in players]
    pace = Pace(SAVE_EVERY, sum(checkpoint.size(each.progress) for each in federations))
    name = " and ".join(seat.cell.name for seat in seats)

    def keep() -> None:
        sound = [player for player in players if player.federation.diverged is None]
        for player in sound:
            player.keep([each.cell.key for each in sound])

    def before() -> None:
        if asked is not None and asked.stop:
            keep()
            done = max(each.rounds for each in federations)
            raise Interrupted(f"{name}, round {done}")
        if pace.due():
            pace.keep(keep)

    def after(federation: Federation, happened: Round, scores: Metrics | None) -> None:
        player = of[id(federation)]
        player.note(scores)
        if tell is not None:
            tell(federation.rounds - player.first, player.cell.rounds)

    several = len(players) > 1 and any(each.going for each in federations)
    train = Together(federations) if several else each_alone
    while players:
        play_rounds(federations, before, after, train)
        if several:  # The others go on, now or after a kill, from a round that all of them have.
            keep()
        for player in players:
            if not player.federation.going:
                made(player.cell, player.record(folder))
        players = [player for player in players if player.federation.going]


def _made(cell: Cell, place: Path) -> Callable[[str], Zeros]:
    return made_tables(tables(cell.config.run, place).zeros)


@dataclass
class _Player:
    """A cell at play."""

    cell: Cell
    place: Path
    federation: Federation
    metrics: list[Metrics]

    @property
    def first(self) -> int:
        """The round in which it began."""
        return self.federation.cadence.rounds - self.cell.rounds

    def note(self, scores: Metrics | None) -> None:
        if scores is not None:
            self.metrics.append(scores | _whole(self.federation))

    def keep(self, company: list[str]) -> None:
        federation = self.federation
        notes = {"metrics": self.metrics, "threads": torch.get_num_threads(), TOGETHER: company}
        notes |= {"seconds": federation.seconds, "evaluating": federation.evaluating}
        progress, names = federation.progress, client_tables(federation.simulation)
        checkpoint.save(self.place, federation.rounds, progress, notes, progress.delivered, names)

    def record(self, folder: Path) -> Record:
        if self.cell.point[METHOD] == WARM_UP:
            training = self.federation.simulation.training
            state = training.layout.state_dict(self.federation.x, training.model.module)
            write(folder / f"{self.cell.key}.safetensors", save(state))
        return _record(self.cell, self.federation) | {"metrics": self.metrics}


def _seated(seat: Seat, found: checkpoint.Checkpoint | None, folder: Path) -> _Player:
    """The cell as it stands, with what there is of it."""
    cell, at = seat.cell, found.notes if found else {}
    simulation = simulation_of(cell.config, seat.place)
    progress = restore(simulation, found.tree) if found else _started(simulation, cell, folder)
    run = cell.config.run
    last = run.rounds + (0 if cell.after is None else cell.after.rounds)
    player = _Player(
        cell,
        seat.place,
        Federation(
            simulation,
            progress,
            Cadence(run.evaluate_every, run.clients_every or run.evaluate_every, last),
            simulation.evaluator(run.client_samples),
            seconds=at.get("seconds", 0.0),
            evaluating=at.get("evaluating", 0.0),
        ),
        at.get("metrics", []),
    )
    whole = _whole(player.federation)
    if not player.metrics and whole:
        player.metrics.append({"round": player.first, **whole})
    return player


def _whole(federation: Federation) -> Metrics:
    """The model, where it is so small that it is looked at itself."""
    small = federation.simulation.training.layout.size <= _SMALL
    return {"x": federation.x.tolist()} if small else {}


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
