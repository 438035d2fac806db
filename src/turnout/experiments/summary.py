"""Means and standard deviations over seeds, and what is best beyond the spread."""

from collections.abc import Callable, Sequence
from statistics import mean, stdev
from typing import Any, NamedTuple

from turnout.experiments.results import Result, Results


class Column(NamedTuple):
    key: str
    heading: str
    of: Callable[[Result, int], float | None]
    """(cell, rounds at the end to average over) → value"""
    scale: float = 1.0
    digits: int = 1
    better: int = 0
    """1: more is better; −1: less is; 0: neither is marked."""


def _final(metric: str) -> Callable[[Result, int], float | None]:
    def of(cell: Result, tail: int) -> float | None:
        values = cell.curve(metric)[1]
        return values[-1] if values else None

    return of


def _tail(metric: str) -> Callable[[Result, int], float | None]:
    def of(cell: Result, tail: int) -> float | None:
        rounds, values = cell.curve(metric)
        kept = [v for r, v in zip(rounds, values, strict=True) if r > rounds[-1] - tail]
        return mean(kept) if kept else None

    return of


def _best(metric: str, choose: Callable[[list[float]], float]) -> Callable[..., float | None]:
    def of(cell: Result, tail: int) -> float | None:
        values = cell.curve(metric)[1]
        return choose(values) if values else None

    return of


def _seconds(cell: Result, tail: int) -> float | None:
    return cell.seconds / cell.round if cell.round else None


def _cost(name: str) -> Callable[[Result, int], float | None]:
    def of(cell: Result, tail: int) -> float | None:
        return cell.costs.get(name) or None  # nothing is shown as –

    return of


def _sent(cell: Result, tail: int) -> float | None:
    """Bytes a round, both ways, for the updates that arrived."""
    came = sum(row["delivered"] or 0 for row in cell.clients)
    if not (cell.costs and cell.round and came):
        return None
    return (cell.costs["down"] + cell.costs["up"]) * came / cell.round


COLUMNS = (
    Column("final", "final test acc. %", _final("test_accuracy"), 100, 1, 1),
    Column("tail", "last {tail} rounds %", _tail("test_accuracy"), 100, 1, 1),
    Column("best", "best round %", _best("test_accuracy", max), 100, 1, 1),
    Column("test_loss", "final test loss", _final("test_loss"), 1, 4, -1),
    Column("train_loss", "train loss", _final("train_loss"), 1, 3, -1),
    Column("spread", "client spread %", _final("spread_accuracy"), 100, 1, -1),
    Column("spread_loss", "spread of loss", _final("spread_loss"), 1, 4, -1),
    Column("never_seen", "never seen %", _final("never_seen_accuracy"), 100, 1, 1),
    Column("seconds", "ms a round", _seconds, 1000, 1),
    Column("server_memory", "server memory MB", _cost("server"), 1e-6, 3),
    Column("client_memory", "memory a client MB", _cost("client"), 1e-6, 3),
    Column("sent", "sent a round MB", _sent, 1e-6, 3),
)
_INSTEAD = {"test_loss": "final", "spread_loss": "spread"}
"""Shown only where the better one to look at does not exist: without classes."""


class Entry(NamedTuple):
    """One method's value of one column, in the column's unit."""

    mean: float
    std: float | None
    """Of the sample, over seeds; None with a single seed."""
    seeds: int


class Line(NamedTuple):
    label: str
    seeds: int
    diverged: list[int]
    """Seeds that did not finish; they are left out of the means."""
    entries: dict[str, Entry]


class Summary(NamedTuple):
    tail: int
    columns: list[Column]
    lines: list[Line]

    def entry(self, label: str, key: str) -> Entry | None:
        return next((line.entries.get(key) for line in self.lines if line.label == label), None)

    def heading(self, column: Column) -> str:
        return column.heading.format(tail=self.tail)


def summarise(results: Results) -> Summary:
    """A line for each method."""
    tail = min(results.config.run.tail, results.config.run.rounds)
    lines = [_line(label, results.of(label), tail) for label in results.labels()]
    present = {key for line in lines for key in line.entries}
    columns = [c for c in COLUMNS if c.key in present and _INSTEAD.get(c.key) not in present]
    return Summary(tail, columns, lines)


def _line(label: str, cells: Sequence[Result], tail: int) -> Line:
    done = [cell for cell in cells if cell.status == "done"]
    entries = {}
    for column in COLUMNS:
        values = [column.of(cell, tail) for cell in done]
        found = [value * column.scale for value in values if value is not None]
        if found:
            spread = stdev(found) if len(found) > 1 else None
            entries[column.key] = Entry(mean(found), spread, len(found))
    return Line(label, len(cells), [c.seed for c in cells if c.status == "diverged"], entries)


def leader(summary: Summary, column: Column) -> str | None:
    """The method that is best by more than the spread over seeds, if there is one.

    By more than the larger of its own standard deviation and the runner-up's; with one seed there
    is no spread to compare with, and nobody leads.
    """
    if not column.better:
        return None
    ranked = sorted(
        (
            (line.entries[column.key], line.label)
            for line in summary.lines
            if column.key in line.entries
        ),
        key=lambda pair: -column.better * pair[0].mean,
    )
    if len(ranked) < 2:
        return None
    (first, label), (second, _) = ranked[:2]
    return label if _apart(first, second) else None


def ahead(summary: Summary, column: Column, most: int = 3) -> list[str]:
    """The few methods that all others are behind by more than the spread over seeds, best first.

    One, if there is a leader; more where those in front are too close to each other to say.
    """
    ranked = sorted(
        (
            (line.entries[column.key], line.label)
            for line in summary.lines
            if column.key in line.entries
        ),
        key=lambda pair: -column.better * pair[0].mean,
    )
    for front in range(1, min(most, len(ranked) - 1) + 1):
        pairs = [(one, other) for one, _ in ranked[:front] for other, _ in ranked[front:]]
        if all(_apart(one, other) for one, other in pairs):
            return [label for _, label in ranked[:front]]
    return []


def _apart(one: Entry, other: Entry) -> bool:
    """Do they differ by more than the larger of their spreads?"""
    if one.std is None or other.std is None:
        return False
    return abs(one.mean - other.mean) > max(one.std, other.std)


def as_json(summary: Summary) -> list[dict[str, Any]]:
    """The summary as plain values."""
    return [
        {
            "algorithm": line.label,
            "seeds": line.seeds,
            "diverged": line.diverged,
            **{
                key: {"mean": entry.mean, "std": entry.std, "seeds": entry.seeds}
                for key, entry in line.entries.items()
            },
        }
        for line in summary.lines
    ]
