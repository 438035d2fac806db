"""A federation's folder: checkpoints, the participation log and the metrics of every round."""

import json
import logging
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from flwr.app import MetricRecord

from turnout import checkpoint
from turnout.errors import InputError, require
from turnout.experiments.lock import locked
from turnout.flower import participation_log
from turnout.flower.federation import Federation
from turnout.flower.participation_log import Entry
from turnout.flower.progress import Progress, restore
from turnout.flower.roster import Roster

LOG_FILE, METRICS_FILE, CHECKPOINTS = "participation.csv", "metrics.jsonl", "checkpoints"
LOG = logging.getLogger("flwr.turnout")

_PATIENCE = 5.0
"""Seconds for which a run waits for one that is being stopped."""


@dataclass(frozen=True)
class Saved:
    """What a federation goes on from."""

    progress: Progress
    names: list[str]
    metrics: dict[int, MetricRecord]
    """By Flower's number of the round, from 1."""
    notes: dict[str, Any]


@dataclass(frozen=True)
class Store:
    """Where a federation is kept, so that its ServerApp may end at any moment and go on."""

    folder: Path

    @contextmanager
    def held(self) -> Iterator[None]:
        """The folder is this federation's alone; an `InputError` if another run writes to it.

        A run goes on when nobody looks at its log any more, so a second one is soon started.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        instead = "stop its run (flwr list, flwr stop), or give this one another directory"
        with locked(self.folder, _PATIENCE, instead):
            yield

    def load(self) -> Saved | None:
        """What was saved last, if anything; files that ran ahead of it are cut back."""
        found = checkpoint.load(self.folder / CHECKPOINTS, warn=LOG.warning)
        if found is None:
            for name in (LOG_FILE, METRICS_FILE):
                _cut(self.folder / name, 0)
            return None
        notes = found.notes
        _cut(self.folder / LOG_FILE, notes["log_bytes"])
        _cut(self.folder / METRICS_FILE, notes["metrics_bytes"])
        lines = (self.folder / METRICS_FILE).read_text(encoding="utf-8").splitlines()
        metrics = {}
        for line in lines:
            values = json.loads(line)
            metrics[values.pop("round")] = MetricRecord(values)
        return Saved(restore(found.tree), notes["names"], metrics, notes)

    def save(self, federation: Federation, entries: Iterable[Entry], metrics: MetricRecord) -> None:
        """Write down a round that is over."""
        self.folder.mkdir(parents=True, exist_ok=True)
        progress, roster = federation.progress, federation.roster
        done = federation.round
        log_bytes = participation_log.append(self.folder / LOG_FILE, entries, done, roster.size)
        line = json.dumps({"round": done, **metrics}) + "\n"
        notes = {
            "names": roster.names,
            "algorithm": federation.algorithm.name,
            "seed": federation.seed,
            "log_bytes": log_bytes,
            "metrics_bytes": _append(self.folder / METRICS_FILE, line),
        }
        checkpoint.save(
            self.folder / CHECKPOINTS, done, progress, notes, delivered=progress.delivered
        )


def fit(saved: Saved, begun: Progress, roster: Roster, algorithm: str, seed: int) -> None:
    """Refuse to go on from a checkpoint of something else, and let the roster have its names.

    `begun` is the progress that the Strategy's own settings would start with.
    """
    require(
        saved.notes["algorithm"] == algorithm,
        "algorithm of the checkpoint",
        saved.notes["algorithm"],
        f"{algorithm!r}; another federation needs another directory",
    )
    require(saved.notes["seed"] == seed, "seed of the checkpoint", saved.notes["seed"], str(seed))
    before, now = saved.progress.server, begun.server
    found, expected = _outline(before), _outline(now)
    require(found == expected, "state in the checkpoint", found, f"{expected}")
    for name in saved.names:
        if roster.admit(name) is None:
            raise InputError(
                f"population is {roster.size}; the checkpoint knows {len(saved.names)} clients"
            )
    size = len(before.seen)
    known = roster.grows or size == roster.size
    require(known, "population", roster.size, f"{size}, as in the checkpoint")
    listed = all(roster.names[row] == name for row, name in enumerate(saved.names))
    require(
        listed, "names in population", roster.names, f"in the checkpoint's order, {saved.names}"
    )
    roster.size = size


def _outline(server: Any) -> str:
    """What is in a server's state, but for the values."""

    def keys(node: Any) -> str:
        inner = ", ".join(f"{k}{keys(v)}" for k, v in sorted(node.items()) if isinstance(v, dict))
        names = ", ".join(k for k, v in sorted(node.items()) if not isinstance(v, dict))
        return "{" + "; ".join(part for part in (names, inner) if part) + "}"

    parts = {
        "weight": server.weight,
        "memory": server.memory,
        "transform": server.transform,
        "means": server.means,
    }
    return f"d = {len(server.x)}, {keys(parts)}"


def _append(path: Path, text: str) -> int:
    with open(path, "a", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
        return file.tell()


def _cut(path: Path, size: int) -> None:
    if path.exists() and path.stat().st_size > size:
        os.truncate(path, size)
