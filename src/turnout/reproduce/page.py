"""An item as a page for a browser: ours beside the paper's, with verdicts, figure and cells."""

from collections.abc import Sequence
from pathlib import Path

from turnout.experiments.files import write
from turnout.report.page import Bullets, Code, Fold, Page, Part, Picture, Section, Table, Text, html
from turnout.reproduce.report import Report
from turnout.wording import counted


def page(report: Report) -> Page:
    """Everything that the item's files have."""
    about = report.item.about
    sections = [
        Section("Ours and the paper's", _compared(report)),
        Section("Figure", _figure(report)),
        Section("How it was made", _made(report)),
    ]
    lead = f"{about.title}. Verdicts {report.tally}."
    return Page(report.item.title, lead, [each for each in sections if each.parts])


def keep(report: Report, folder: Path) -> Path:
    """Write the page beside the item's other files."""
    path = folder / f"{report.item.name}-{report.request.scale}.html"
    write(path, html(page(report)))
    return path


def _compared(report: Report) -> list[Part]:
    request = report.request
    caption = f"{report.measured}; scale {request.scale}: {request.setting}"
    parts: list[Part] = [_table(caption, report.shown)]
    if report.details:
        parts.append(Bullets(report.details))
    if report.readings:
        parts.append(_table("Read in all ways that the paper leaves open.", report.readings))
    return [*parts, *(Text(note) for note in report.notes)]


def _table(caption: str, rows: Sequence[Sequence[str]]) -> Table:
    heads, *body = rows
    return Table(caption, heads, body)


def _figure(report: Report) -> list[Part]:
    return [] if report.figure is None else [Picture(report.figure, report.item.about.title)]


def _made(report: Report) -> list[Part]:
    parts: list[Part] = [Code(report.request.command)]
    if report.item.about.note:
        parts.append(Text(" ".join(report.item.about.note.split())))
    parts.append(Text(str(report.origin)))
    if report.cells:
        heads = list(report.cells[0])
        rows = [["" if v is None else _shown(v) for v in cell.values()] for cell in report.cells]
        table = Table("What the table is made of, a line each.", heads, rows)
        parts.append(Fold(counted(len(rows), "cell"), [table]))
    return parts


def _shown(value: object) -> str:
    return f"{value:.5g}" if isinstance(value, float) else str(value)
