"""The field's participation as a file: who was asked, who delivered, when; a row a client asked.

`turnout.participation.load` and `given` read it, so that what happened can be replayed in the
simulator. Rounds count from 0, server rounds included. A late update stands in the round in which
it was taken in.
"""

import csv
import os
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

COLUMNS = ("round", "client", "delivered", "name", "asked_at", "answered_at", "outcome")


class Entry(NamedTuple):
    """One client in one round."""

    round: int
    client: int
    """Its row."""
    delivered: int
    """1 if its update moved the model, else 0."""
    name: str
    asked_at: float
    """Seconds since 1970."""
    answered_at: float | None
    outcome: str
    """"delivered", "late", "dropped", or why there was no delivery."""


def append(path: Path, entries: Iterable[Entry], rounds: int, clients: int) -> int:
    """Add what happened in a round; returns the size of the file in bytes.

    The line `# rounds=… clients=…` says how far the log goes, for rounds in which nobody was
    asked; of several the last one holds.
    """
    new = not path.exists()
    with open(path, "a", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        if new:
            writer.writerow(COLUMNS)
        for entry in sorted(entries):
            times = (entry.asked_at, entry.answered_at)
            asked, answered = ("" if t is None else f"{t:.3f}" for t in times)
            writer.writerow([*entry[:4], asked, answered, entry.outcome])
        file.write(f"# rounds={rounds} clients={clients}\n")
        file.flush()
        os.fsync(file.fileno())
        return file.tell()
