"""Results of an item's cells as the paper's table: rows and columns of entries with verdicts."""

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np

from turnout.errors import InputError
from turnout.reproduce.grid import axes, experiment
from turnout.reproduce.item import METHOD, Item
from turnout.reproduce.judge import MARKS, Entry, ahead, judged, printed
from turnout.reproduce.run import Played
from turnout.reproduce.values import ALWAYS, DECIMALS, Measured, measured, value

Text = list[list[str]]
VALUE = "value"
"""The axis of items that show several values of the same cells side by side."""


def name_of(labels: Sequence[str]) -> str:
    return " · ".join(labels)


def entries(item: Item, scale_name: str, played: Sequence[Played]) -> list[Entry]:
    """All entries, row by row, judged."""
    scale = item.scales[scale_name]
    kept, full = axes(item, scale), axes(item, item.scales["paper"])
    kept[VALUE] = full[VALUE] = list(item.about.values)
    for axis, labels in kept.items():
        shown = axis in (*item.about.rows, *item.about.columns)
        if not shown and len(set(labels) - {item.about.gain_over}) > 1:
            raise InputError(f"{item.title}: the axis {axis!r} is neither in rows nor in columns")
    every_column = [name_of(c) for c in product(*(full[axis] for axis in item.about.columns))]
    found = []
    for row in product(*(kept[axis] for axis in item.about.rows)):
        if item.about.gain_over in row:
            continue
        for column in product(*(kept[axis] for axis in item.about.columns)):
            if item.about.gain_over in column:
                continue
            where = dict(zip(item.about.rows, row, strict=True))
            where |= dict(zip(item.about.columns, column, strict=True))
            numbers = item.printed.get(name_of(row), [])
            place = every_column.index(name_of(column))
            paper = printed(numbers[place]) if place < len(numbers) else None
            name = item.about.values.get(where.pop(VALUE, ""), item.about.value)
            ours = at(item, scale_name, played, where, name)
            found.append(Entry(name_of(row), name_of(column), ours, paper))
    if item.about.first:
        return ahead(found, item.about.first)
    gains = item.about.gain_over is not None
    values = scale.judge == "values"
    return judged(found, gains, values, item.about.close, across=not item.about.values)


def tail_of(item: Item, scale_name: str) -> int:
    """How many rounds at the end a mean of the last is over."""
    run = experiment(item, item.scales[scale_name])["run"]
    return int(min(run.get("tail", 200), run["rounds"]))


def at(
    item: Item, scale_name: str, played: Sequence[Played], where: dict[str, str], name: str
) -> Measured:
    """The value of the cells at these labels, or its gain over the baseline, over seeds."""
    tail, base = tail_of(item, scale_name), item.about.gain_over
    ours = {p.seed: value(name, p.record, tail) for p in _here(item, played, where)}
    if base is not None:
        rest = {axis: label for axis, label in where.items() if axis != METHOD} | {METHOD: base}
        other = [p for p in played if rest.items() <= p.point.items()]
        # Seed by seed: the same data, the same clients that stay away.
        ours = {p.seed: ours[p.seed] - value(name, p.record, tail) for p in other}
    return measured(list(ours.values()), DECIMALS.get(name, 2))


def _here(item: Item, played: Sequence[Played], where: dict[str, str]) -> list[Played]:
    """The cells of an entry, without the baseline that it is a gain over."""
    base = item.about.gain_over
    return [p for p in played if where.items() <= p.point.items() and p.point[METHOD] != base]


def as_text(item: Item, found: Sequence[Entry]) -> Text:
    """The table as it is shown: ours, the paper's in brackets, and the verdict's mark."""
    columns = list(dict.fromkeys(entry.column for entry in found))
    rows: dict[str, list[str]] = {}
    for entry in found:
        paper = "" if entry.paper is None else f" ({entry.paper})"
        rows.setdefault(entry.row, []).append(
            f"{entry.ours}{paper} {MARKS[entry.verdict]}".rstrip()
        )
    heads = [column or item.about.unit for column in columns]
    return [["", *heads], *([row, *texts] for row, texts in rows.items())]


def as_rows(
    item: Item, scale_name: str, played: Sequence[Played], found: Sequence[Entry]
) -> list[dict[str, Any]]:
    """The table as CSV has it: one line an entry, with all that the paper might have printed."""
    rows = []
    for entry in found:
        where = place_of(item, entry)
        row: dict[str, Any] = {**where}
        compared = item.about.values.get(where.pop(VALUE, ""), item.about.value)
        here = of_entry(item, played, entry)
        row["paper"] = "" if entry.paper is None else str(entry.paper)
        row |= {"compared": compared, "mean": entry.ours.mean, "std": entry.ours.std}
        row |= {"seeds": entry.ours.seeds, "verdict": entry.verdict, "why": entry.why}
        if all("classes" in p.record for p in here):
            for name in ALWAYS:
                row[name] = at(item, scale_name, played, where, name).mean
            row["classes_covered"] = covered(here)
        row["diverged"] = sum(p.record["status"] == "diverged" for p in here)
        row["seconds_each"] = sum(p.record["seconds"] for p in here) / len(here)
        rows.append(row)
    return rows


def place_of(item: Item, entry: Entry) -> dict[str, str]:
    """The label that the entry has on each axis of the table."""
    labels = [part for name in (entry.row, entry.column) if name for part in name.split(" · ")]
    return dict(zip([*item.about.rows, *item.about.columns], labels, strict=True))


def of_entry(item: Item, played: Sequence[Played], entry: Entry) -> list[Played]:
    """The cells that the entry comes from, one a seed."""
    where = {axis: label for axis, label in place_of(item, entry).items() if axis != VALUE}
    return _here(item, played, where)


def covered(here: Sequence[Played]) -> float:
    """How many classes the clients who came hold between them, over seeds."""
    return float(np.mean([p.record["classes_covered"] for p in here]))
