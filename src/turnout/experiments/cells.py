"""Cells: one algorithm with one seed each, played to the end and written to their folders."""

import csv
import io
import json
import shutil
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import torch
from safetensors.torch import save

from turnout import checkpoint
from turnout import round as protocol
from turnout.algorithm import Algorithm
from turnout.checkpoint import Checkpoint
from turnout.costs import costs
from turnout.evaluate import Metrics
from turnout.experiments.company import TOGETHER, Kept, resumed
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
from turnout.simulator import each as each_alone
from turnout.tables import Tables
from turnout.together import Together
from turnout.tracking import About, Following, follow

CHECKPOINTS = "checkpoints"

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


def run_cells(
    cells: Sequence[Cell],
    run: RunSection,
    watch: Callable[[Cell, Round, Metrics | None], None] | None = None,
    asked: Asked | None = None,
    resume: bool = False,
    ranks: Ranks = Ranks(),
) -> None:
    """Play the rounds that are left, writing metrics as they come and the rest at the end.

    Several cells train together. With `resume`, a cell that has ended stays as it is and one that has
    not goes on from its newest checkpoint, to the same metrics and the same model as if nothing had
    happened. When they are `asked` to stop, the round is finished and kept, and the cells are
    `Interrupted`. Of several `ranks` the first one writes, and the others only read, checkpoints.
    """
    with ExitStack() as holding:
        for cell in cells:
            ranks.once(partial(cell.folder.mkdir, parents=True, exist_ok=True))
            if ranks.first:
                holding.enter_context(locked(cell.folder, PATIENCE))
        left = [cell for cell in cells if not (resume and ranks.once(partial(_ended, cell.folder)))]
        if left:
            _play(left, run, watch, asked, resume, ranks)
        for cell in cells if ranks.first else ():
            # Nothing is left to resume, perhaps since an earlier process that was killed just here.
            shutil.rmtree(cell.folder / CHECKPOINTS, ignore_errors=True)


def _play(
    cells: Sequence[Cell],
    run: RunSection,
    watch: Callable[[Cell, Round, Metrics | None], None] | None,
    asked: Asked | None,
    resume: bool,
    ranks: Ranks,
) -> None:
    found: list[Checkpoint | None] | None = [None for _ in cells]
    if resume:
        zeros = [made(ranks.zeros(tables(run, cell.folder).zeros)) for cell in cells]
        found = resumed(
            [
                Kept(cell.place.name, cell.folder / CHECKPOINTS, each)
                for cell, each in zip(cells, zeros, strict=True)
            ]
        )
    if found is None:
        for cell in cells:
            _play([cell], run, watch, asked, resume, ranks)
        return
    # With the engine and the threads of then: others would differ in the last bits.
    at = found[0].notes if found[0] else {}
    torch.set_num_threads(at.get("threads", torch.get_num_threads()))
    with ExitStack() as files:
        players = [
            _Player.of(cell, run, kept, files.enter_context(ExitStack()), ranks, len(cells))
            for cell, kept in zip(cells, found, strict=True)
        ]
        of = {id(player.federation): player for player in players}
        federations = [player.federation for player in players]
        size = sum(checkpoint.size(federation.progress) for federation in federations)
        pace = Pace(run.checkpoint_seconds, size)

        def keep() -> None:
            sound = [player for player in players if player.federation.diverged is None]
            for player in sound:
                player.keep([each.cell.place.name for each in sound])

        def before() -> None:
            stop, due = ranks.agree(asked is not None and asked.stop, pace.due())
            if stop:
                keep()
                names = " and ".join(player.cell.place.name for player in players)
                raise Interrupted(f"{names}, round {max(each.rounds for each in federations)}")
            if due:
                pace.keep(keep)

        def after(federation: Federation, happened: Round, metrics: Metrics | None) -> None:
            player = of[id(federation)]
            player.note(happened, metrics)
            if watch is not None:
                watch(player.cell, happened, metrics)

        several = len(players) > 1 and any(federation.going for federation in federations)
        train = Together(federations) if several else each_alone
        while players:
            play(federations, before, after, train)
            if several:  # The others go on, now or after a kill, from a round that all have.
                keep()
            for player in players:
                if not player.federation.going:
                    player.finish()
            players = [player for player in players if player.federation.going]


@dataclass
class _Player:
    """A cell at play, and its files."""

    cell: Cell
    federation: Federation
    about: dict[str, Any]
    """What its status says."""
    files: ExitStack
    metrics: BinaryIO
    timing: BinaryIO
    following: Following
    heavy: Heavy
    ranks: Ranks

    @staticmethod
    def of(
        cell: Cell,
        run: RunSection,
        found: Checkpoint | None,
        files: ExitStack,
        ranks: Ranks,
        together: int,
    ) -> "_Player":
        """As it stands, with what there is of it."""
        at: dict[str, Any] = found.notes if found else {}
        # Who trains together does so for the sizes that are known, and not by the clock.
        rounds = run.rounds if together == 1 else None
        simulation = simulation_of(cell, run, at.get("engine"), rounds, ranks)
        why = simulation.chosen.why
        if together > 1:
            why += f"; {together} small cells trained together"
        federation = Federation(
            simulation,
            restore(simulation, found.tree) if found else begin(simulation),
            Cadence(run.evaluate_every, run.clients_every or run.evaluate_every, run.rounds),
            simulation.evaluator(run.client_samples),
            looking=ranks.first,
            seconds=at.get("seconds", 0.0),
            evaluating=at.get("evaluating", 0.0),
        )
        about = {"algorithm": cell.label, "method": repr(cell.algorithm), "seed": cell.seed}
        about |= {
            "engine": simulation.chosen.name,
            "why": at.get("why", why),
            "memory": cell.algorithm.memory is not None,
            "rounds": run.rounds,
            "costs": costs(cell.algorithm, federation.progress.server)._asdict(),
        }
        if ranks.first:
            _status(cell, about, "running", federation.rounds)
        told = _followed(cell, run, about, federation.rounds)
        return _Player(
            cell,
            federation,
            about,
            files,
            files.enter_context(_lines(cell.folder / "metrics.jsonl", at.get("metrics", 0), ranks)),
            files.enter_context(_lines(cell.folder / "timing.jsonl", at.get("timing", 0), ranks)),
            files.enter_context(follow(run.track if ranks.first else [], told)),
            Heavy(cell.place.name),
            ranks,
        )

    def note(self, happened: Round, metrics: Metrics | None) -> None:
        """Write down what this round was."""
        federation = self.federation
        self.heavy.note(happened, len(federation.progress.delivered))
        if metrics is not None:
            _append(self.metrics, metrics)
            timing = {"seconds": federation.seconds, "evaluating": federation.evaluating}
            _append(self.timing, {"round": metrics["round"], **timing})
            self.following(metrics)

    def keep(self, company: list[str]) -> None:
        """Write a checkpoint."""
        progress = self.federation.progress
        shown = [*progress.kept.values(), *progress.server.memory.values()]
        self.ranks.showing(shown, partial(self._write_down, company))

    def _write_down(self, company: list[str]) -> None:
        federation, progress = self.federation, self.federation.progress
        notes = {
            "metrics": settle(self.metrics),
            "timing": settle(self.timing),
            "seconds": federation.seconds,
            "evaluating": federation.evaluating,
            "engine": self.about["engine"],
            "why": self.about["why"],
            "threads": torch.get_num_threads(),
            TOGETHER: company,
        }
        place, names = self.cell.folder / CHECKPOINTS, client_tables(federation.simulation)
        checkpoint.save(place, federation.rounds, progress, notes, progress.delivered, names)

    def finish(self) -> None:
        """Write what there is at the end."""
        diverged = self.federation.diverged
        if diverged is not None:
            self.following.ending = "diverged"
        self.files.close()
        if self.ranks.first:
            done = self.about["rounds"] if diverged is None else diverged.round
            _keep(self.cell, self.federation, done)
            _status(self.cell, self.about, "done" if diverged is None else "diverged", done)


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


def _ended(folder: Path) -> bool:
    """False also where it cannot be told: then the cell is played, to what it was."""
    try:
        status = json.loads((folder / "status.json").read_bytes())["status"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return False
    return status in ("done", "diverged")


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
    # Whom a selection asks that goes by losses, no replay can tell.
    if rounds and not federation.simulation.algorithm.hears:
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
                cohort, known = protocol.chosen(
                    selection, known, asked, cohort, world.clients, shares, seed
                )
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
