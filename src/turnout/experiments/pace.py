"""When to write the next checkpoint: often, but never at more than a small share of the time."""

from collections.abc import Callable
from time import monotonic

SHARE = 0.04
"""Of the time between two checkpoints, how much writing the next one may take."""
SPEED = 200e6
"""Bytes a second at which the first checkpoint is expected to be written; then it is measured."""


class Pace:
    """Due every `seconds`, or more rarely where a checkpoint takes more than `SHARE` of that.

    Runs are exact whatever the pace, so it may depend on the clock. With `seconds` of 0 it is due
    after every round, whatever the cost.
    """

    def __init__(
        self, seconds: float, size: int = 0, clock: Callable[[], float] = monotonic
    ) -> None:
        self.seconds, self.clock = seconds, clock
        self.last, self.cost = clock(), size / SPEED

    def due(self) -> bool:
        if self.seconds == 0:
            return True
        return self.clock() - self.last >= max(self.seconds, self.cost / SHARE)

    def keep(self, write: Callable[[], object]) -> None:
        """Write, and note what it cost."""
        began = self.clock()
        write()
        self.last = self.clock()
        self.cost = self.last - began
