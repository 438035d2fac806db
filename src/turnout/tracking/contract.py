"""What a tracker is told, and what it has to offer."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple

Ending = Literal["done", "diverged", "stopped"]
Scalars = dict[str, float]


class About(NamedTuple):
    """The run that is followed."""

    experiment: str
    """What belongs together: the name of the experiment."""
    method: str
    seed: int
    folder: Path
    """A folder of the run's own, which is kept: where a tracker may leave files."""
    settings: Mapping[str, Any]
    after: int = 0
    """Rounds done before: above 0 where the run goes on from a checkpoint."""

    @property
    def name(self) -> str:
        return f"{self.method}, seed {self.seed}"


class Tracker(NamedTuple):
    """One run in one tracker."""

    log: Callable[[int, Scalars], None]
    """(round, metrics)"""
    close: Callable[[Ending], None]


class Kind(NamedTuple):
    """A tracker that can be asked for by name."""

    module: str
    """What must be importable."""
    start: Callable[[About], Tracker]
    prepare: Callable[[str], None] = lambda experiment: None
    """Called once for an experiment, before its runs start side by side."""
