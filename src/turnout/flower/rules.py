"""How long a round may take, whom it asks, and what it takes."""

from dataclasses import dataclass
from math import ceil, isfinite
from typing import TypeGuard

from turnout.errors import require


@dataclass(frozen=True)
class Rules:
    """The settings of the exchange with clients; times are in seconds."""

    deadline: float = 60.0
    """A round is over after so long, whoever has answered."""
    quorum: int | float | None = None
    """It is over as soon as so many of those asked have delivered: a number, or a share in (0, 1)."""
    min_round: float = 1.0
    """It takes at least so long: without this, rounds in which nobody is there would fly by."""
    late_rounds: int = 0
    """For how many more rounds an update may still come in; 0 refuses all late ones."""
    per_round: int | None = None
    """Ask at most so many clients, drawn from those who are there."""
    norm_bound: float | None = None
    """Refuse updates (and changes of what clients keep) with a larger Euclidean norm."""
    start_with: int = 1
    """Before the first round, wait until so many clients are there …"""
    startup: float = 60.0
    """… but not longer than this."""

    def __post_init__(self) -> None:
        for field in ("deadline", "min_round", "startup"):
            seconds = getattr(self, field)
            require(_real(seconds), field, seconds, "a finite number of seconds")
        for field in ("late_rounds", "start_with"):
            require(_whole(getattr(self, field)), field, getattr(self, field), "a whole number")
        require(self.deadline > 0, "deadline", self.deadline, "above 0 seconds")
        whole = _whole(self.quorum) and self.quorum >= 1
        share = isinstance(self.quorum, float) and 0 < self.quorum < 1
        right = "a number of clients from 1, a share in (0, 1), or none"
        require(self.quorum is None or whole or share, "quorum", self.quorum, right)
        within = 0 <= self.min_round <= self.deadline
        require(within, "min_round", self.min_round, f"from 0 to the deadline, {self.deadline:g}")
        require(self.late_rounds >= 0, "late_rounds", self.late_rounds, "0 or more")
        drawn = self.per_round is None or (_whole(self.per_round) and self.per_round >= 1)
        require(drawn, "per_round", self.per_round, "a whole number from 1, or none")
        bounded = self.norm_bound is None or (_real(self.norm_bound) and self.norm_bound > 0)
        require(bounded, "norm_bound", self.norm_bound, "above 0, or none")
        require(self.start_with >= 0, "start_with", self.start_with, "0 or more")
        require(self.startup >= 0, "startup", self.startup, "0 or more seconds")

    @property
    def patience(self) -> float:
        """How long a round waits for anybody to ask: who is asked later has too little time left."""
        return self.deadline / 2

    @property
    def grace(self) -> float:
        """How long the end of a round waits for answers that are on their way to the server."""
        return self.deadline / 10

    @property
    def lifetime(self) -> float:
        """How long an order counts; with Flower, its time to live."""
        return self.deadline * (1 + self.late_rounds)

    def enough(self, asked: int) -> int:
        """How many deliveries end a round in which so many were asked.

        >>> Rules(quorum=0.5).enough(5), Rules(quorum=3).enough(2), Rules().enough(4)
        (3, 2, 4)
        """
        if self.quorum is None:
            return asked
        wanted = self.quorum if isinstance(self.quorum, int) else ceil(self.quorum * asked)
        return min(wanted, asked)


def _real(value: object) -> bool:
    """A deadline of infinity would be a wait without end."""
    return isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)


def _whole(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)
