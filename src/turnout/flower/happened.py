"""What became of everybody asked in a round: for the log, the metrics and the log file."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from math import isfinite

from flwr.app import MetricRecord

from turnout.flower.messages import Ticket
from turnout.flower.participation_log import Entry

DROPPED = "dropped by the injected mask"


@dataclass(frozen=True)
class Ask:
    """Written on an order: who was asked what, and until when the answer counts."""

    row: int
    name: str
    claim: str
    """What it calls itself, where a registered name goes before that."""
    node: int
    round: int
    """The round, of either kind, in which it was asked."""
    ticket: Ticket
    asked_at: float
    expires: float
    heeded: bool = True
    """False where an injected mask says that the update gets lost on its way."""


@dataclass
class Happened:
    """One round, while it goes on and after."""

    round: int
    by: str
    """"clients" or "server": who trains."""
    asked: dict[int, Ask] = field(default_factory=dict)
    entries: dict[int, Entry] = field(default_factory=dict)
    """By row: outcomes, as they become known."""
    taken: list[Ask] = field(default_factory=list)
    """Whose updates were taken in, those of earlier rounds included."""
    refused: list[str] = field(default_factory=list)
    """Names and reasons."""
    reported: list[MetricRecord] = field(default_factory=list)
    cut: int = 0
    """Numbers that were cut off in secure aggregation."""
    lost: bool = False
    """Has a client lost what it kept?"""

    def note(self, ask: Ask, outcome: str, at: float | None, delivered: bool = False) -> None:
        """Note what became of one client; what was noted first holds."""
        entry = Entry(self.round, ask.row, int(delivered), ask.name, ask.asked_at, at, outcome)
        self.entries.setdefault(ask.row, entry)

    @property
    def answered(self) -> bool:
        """Has everybody who was asked in this round answered, one way or another?"""
        return all(row in self.entries for row in self.asked)

    @property
    def silent(self) -> set[int]:
        """Rows of those who were asked and of whom nothing was heard."""
        return {row for row in self.asked if self.entries[row].answered_at is None}

    @property
    def delivered(self) -> int:
        """Updates of this round's own orders that were taken in."""
        return sum(ask.round == self.round for ask in self.taken)

    def metrics(self) -> MetricRecord:
        weights = [ask.ticket.weight for ask in self.taken]
        out = mean_metrics(self.reported)  # first, so that no client can speak for the server
        out.update(
            {
                "asked": len(self.asked),
                "delivered": len(self.taken),
                "late": len(self.taken) - self.delivered,
                "refused": len(self.refused),
            }
        )
        if weights:
            out["weight-mean"] = sum(weights) / len(weights)
            out["weight-max"] = max(weights)
        if self.cut:
            out["secure-cut"] = self.cut
        for sentence in self.refused:
            out[f"refused: {sentence}"] = 1
        return out


def mean_metrics(reported: Iterable[MetricRecord]) -> MetricRecord:
    """Means over clients of the finite numbers that they report, by their number of examples."""
    sums: dict[str, list[float]] = {}
    for metrics in reported:
        share = _finite(metrics.get("num-examples", 1))
        for name, value in metrics.items():
            number = _finite(value)
            if name == "num-examples" or number is None or share is None or share <= 0:
                continue
            total = sums.setdefault(name, [0.0, 0.0])
            total[0] += share * number
            total[1] += share
    means = {name: total / count for name, (total, count) in sums.items()}
    return MetricRecord({name: mean for name, mean in means.items() if isfinite(mean)})


def _finite(value: object) -> float | None:
    """The number, where it is one that a mean can be made of."""
    if not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if isfinite(number) else None
