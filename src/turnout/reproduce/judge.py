"""Verdicts: does our number match the paper's, or at least its order, or does it differ?"""

from collections.abc import Sequence
from typing import Literal, NamedTuple

from turnout.reproduce.values import Measured

Verdict = Literal["matches", "same order", "differs", ""]
MARKS: dict[Verdict, str] = {"matches": "=", "same order": "~", "differs": "≠", "": ""}
POINTS = 1.5
"""Two numbers this close match, whatever their spread; paper's gaps below it are no order."""

BY_SPREAD = "by the spread"
"""Why a number matches that is farther away."""


class Printed(NamedTuple):
    """The paper's number; `below` where it prints only that it is less."""

    value: float
    std: float = 0.0
    below: bool = False

    def __str__(self) -> str:
        spread = f" ±{self.std:g}" if self.std else ""
        return f"{'<' if self.below else ''}{self.value:g}{spread}"


class Entry(NamedTuple):
    row: str
    column: str
    ours: Measured
    paper: Printed | None
    verdict: Verdict = ""
    why: str = ""


def printed(node: object) -> Printed | None:
    """What an item file says: 57.05, [57.05, 0.3], "<2", or "none" where nothing is printed."""
    if node is None or node == "none":
        return None
    if isinstance(node, str):
        return Printed(float(node.removeprefix("<")), below=True)
    if isinstance(node, list):
        return Printed(float(node[0]), float(node[1]))
    assert isinstance(node, int | float)
    return Printed(float(node))


def judged(
    entries: Sequence[Entry],
    signed: bool,
    values: bool,
    points: float = POINTS,
    across: bool = True,
) -> list[Entry]:
    """Entries with their verdicts. `signed`: they are gains, whose order is their sign.

    `values`: whether the numbers themselves compare, or only their order. `across`: whether the
    columns are of one kind, so that their order means anything.
    """
    columns = {e.column: [other for other in entries if other.column == e.column] for e in entries}
    return [
        _judge(entry, entries if across else columns[entry.column], signed, values, points)
        for entry in entries
    ]


def _judge(
    entry: Entry, entries: Sequence[Entry], signed: bool, values: bool, points: float
) -> Entry:
    if entry.paper is None:
        return entry
    off = entry.ours.mean - entry.paper.value
    if entry.paper.below:
        off = max(off, 0.0)
    spread = (entry.ours.std or 0.0) + entry.paper.std
    if values and abs(off) <= max(points, spread):
        return entry._replace(verdict="matches", why="" if abs(off) <= points else BY_SPREAD)
    off_text = f"{off:+.2g}" if values else ""
    if signed:
        broken = _sign(entry)
    else:
        others = _ordered(entry, entries, points)
        if not others:
            # Nothing whose order the paper tells: a number that is off differs.
            return entry._replace(verdict="differs", why=off_text) if values else entry
        broken = next((why for why in others if why), None)
    if broken is None:
        return entry._replace(verdict="same order", why=off_text)
    return entry._replace(verdict="differs", why="; ".join(filter(None, (off_text, broken))))


def _sign(entry: Entry) -> str | None:
    assert entry.paper is not None
    if entry.paper.below:  # a gain too small to print: no sign to hold
        return None if entry.ours.mean < 5 else "a gain where the paper has hardly any"
    return None if entry.ours.mean * entry.paper.value > 0 else "the sign is the other one"


def _ordered(entry: Entry, entries: Sequence[Entry], points: float) -> list[str]:
    """Of all in its row or column that the paper has clearly above or below: what is wrong, if it is."""
    assert entry.paper is not None
    found = []
    for other in entries:
        near = (other.row == entry.row) != (other.column == entry.column)
        if not near or other.paper is None:
            continue
        gap = entry.paper.value - other.paper.value
        if abs(gap) > points:
            name = other.row if other.column == entry.column else other.column
            wrong = gap * (entry.ours.mean - other.ours.mean) <= 0
            found.append(
                f"{'below' if gap > 0 else 'above'} {name}, unlike the paper" if wrong else ""
            )
    return found


def ahead(entries: Sequence[Entry], first: str) -> list[Entry]:
    """Where the paper draws and prints no number, but says who is ahead: the row or column `first`."""

    def judge(entry: Entry) -> Entry:
        if first in (entry.row, entry.column):
            return entry
        across = any(other.column == first for other in entries)
        (leader,) = (
            other.ours.mean
            for other in entries
            if first in (other.row, other.column)
            and (other.row == entry.row if across else other.column == entry.column)
        )
        off = entry.ours.mean - leader
        why = "" if off <= 0 else f"ahead of {first} by {off:.2g}, unlike the paper"
        return entry._replace(verdict="differs" if why else "same order", why=why)

    return [judge(entry) for entry in entries]


def counts(entries: Sequence[Entry]) -> dict[str, int]:
    """How many of each verdict.

    >>> counts([Entry("a", "b", Measured(1, None, 1), None, "matches")])
    {'matches': 1, 'same order': 0, 'differs': 0}
    """
    return {name: sum(e.verdict == name for e in entries) for name in MARKS if name}
