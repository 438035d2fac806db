"""What an item comes down to, whatever its kind; on the terminal and in files."""

import csv
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from matplotlib.figure import Figure

from turnout.experiments.files import write
from turnout.experiments.style import save, settings
from turnout.reproduce.item import BOARD, Item
from turnout.reproduce.judge import BY_SPREAD, Entry, counts
from turnout.reproduce.origin import Origin
from turnout.reproduce.request import Request
from turnout.reproduce.table import Text


class Report(NamedTuple):
    request: Request
    shown: Text
    """The table: a row of headings, then the others."""
    rows: list[dict[str, Any]]
    entries: Sequence[Entry]
    """What has been judged."""
    figure: Figure | None = None
    notes: Sequence[str] = ()
    origin: Origin = Origin(0.0, 0, "", (), "")
    readings: Sequence[list[str]] = ()
    """A second table: the same cells as final, best and mean-of-last values, or what methods cost."""
    cells: Sequence[dict[str, Any]] = ()
    """What the table is made of, a line each."""

    @property
    def item(self) -> Item:
        return self.request.item

    @property
    def alone(self) -> bool:
        """Is there no paper to compare with?"""
        return self.item.paper == BOARD

    @property
    def measured(self) -> str:
        """What stands in the table."""
        return self.item.about.unit + ("" if self.alone else ", ours (the paper's)")

    @property
    def heading(self) -> str:
        return f"{self.item.title}: {self.item.about.title}"

    @property
    def tally(self) -> str:
        """The verdicts in a line.

        The marks stand in the table too.
        """
        found = counts(self.entries)
        total = sum(found.values())
        if not total:
            return "nothing that the paper prints to compare with"
        marks = zip(found.items(), "=~≠", strict=True)
        wide = sum(entry.why == BY_SPREAD for entry in self.entries)
        spread = (
            f"; {wide} of the matches are farther apart, but within the spreads over seeds"
            if wide
            else ""
        )
        said = ", ".join(f"{n} {name} ({mark})" for (name, n), mark in marks)
        return f"of {total}: {said}{spread}"

    @property
    def details(self) -> list[str]:
        """What differs, by how much, and what of the order is lost."""
        return [
            f"{', '.join(filter(None, (entry.row, entry.column)))}: {entry.ours}"
            f"{'' if entry.paper is None else f' against {entry.paper}'}: differs, {entry.why}"
            for entry in self.entries
            if entry.verdict == "differs"
        ]


def plain(report: Report) -> str:
    """Aligned text."""
    request = report.request
    lines = [
        report.heading,
        f"{report.measured}; scale {request.scale}: {request.setting}",
    ]
    lines += ["", *_aligned(report.shown), "", *([] if report.alone else [report.tally])]
    lines += [f"  {detail}" for detail in report.details]
    return "\n".join([*lines, *report.notes]) + "\n"


def _aligned(rows: Text) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        cells = [f"{text:<{width}}" for text, width in zip(row, widths, strict=True)]
        lines.append("  ".join(cells).rstrip())
    return [lines[0], "-" * max(map(len, lines)), *lines[1:]]


def markdown(report: Report, stem: str) -> str:
    """The report as a section of a document."""
    about, request = report.item.about, report.request
    lines = [f"## {report.heading}", "", f"`{request.command}`", ""]
    lines += [f"Scale *{request.scale}*: {request.setting}. In the table: {report.measured}."]
    if about.note:
        lines += ["", " ".join(about.note.split())]
    lines += ["", *_piped(report.shown)]
    if not report.alone:
        lines += ["", f"Verdicts {report.tally}."]
    if report.details:
        lines += ["", *(f"- {detail}" for detail in report.details)]
    if report.readings:
        lines += ["", *_piped(report.readings)]
    for note in report.notes:
        lines += ["", note]
    if report.figure is not None:
        lines += ["", f"![{about.title}]({stem}.svg)"]
    lines += ["", str(report.origin)]
    return "\n".join(lines) + "\n"


def _piped(rows: Sequence[list[str]]) -> list[str]:
    head, *body = rows
    return ["| " + " | ".join(row) + " |" for row in (head, ["---"] * len(head), *body)]


def as_csv(rows: Sequence[dict[str, Any]]) -> str:
    text = io.StringIO()
    names = dict.fromkeys(name for row in rows for name in row)
    writer = csv.DictWriter(text, list(names), lineterminator="\n")
    writer.writeheader()
    writer.writerows({key: "" if v is None else v for key, v in row.items()} for row in rows)
    return text.getvalue()


def keep(report: Report, folder: Path) -> list[Path]:
    """Write the report's files and say which."""
    folder.mkdir(parents=True, exist_ok=True)
    stem = folder / f"{report.item.name}-{report.request.scale}"
    paths = [stem.with_suffix(".md"), stem.with_suffix(".csv")]
    write(paths[0], markdown(report, stem.name))
    write(paths[1], as_csv(report.rows))
    if report.cells:
        paths.append(stem.with_name(f"{stem.name}-cells.csv"))
        write(paths[-1], as_csv(report.cells))
    if report.figure is not None:
        with settings():
            paths += save(report.figure, stem)
    return paths
