"""A page as a value: sections of text, tables and figures; `html` makes one self-contained file of it.

Nothing is fetched from anywhere. The page follows the reader's light or dark scheme and has a button
for the other one; it prints, fits a phone, and can be read with a keyboard and a screen-reader.

    page = Page("Audit", "Who shows up.", [Section("Rates", [Text("…"), Picture(figure, "…")])])
    keep(page, folder / "audit.html")
"""

import re
from collections.abc import Iterator, Sequence
from html import escape
from importlib.resources import files
from itertools import count
from pathlib import Path
from typing import NamedTuple

from matplotlib.figure import Figure

from turnout import __version__
from turnout.experiments.files import write
from turnout.report.drawing import drawing, swatch

BYTES = 6_000_000
"""No page is larger; the figures are thinned so that none comes near."""


class Text(NamedTuple):
    """A paragraph; `backticks` set code."""

    text: str


class Bullets(NamedTuple):
    items: Sequence[str]


class Code(NamedTuple):
    """What a program reads or prints, as it is."""

    text: str


class Best(str):
    """A cell of a table that is set in bold."""

    __slots__ = ()


class Table(NamedTuple):
    """Rows of text; the first column names the row, columns of numbers stand to the right."""

    caption: str
    heads: Sequence[str]
    rows: Sequence[Sequence[str]]


class Picture(NamedTuple):
    """A figure of matplotlib, drawn within `experiments.style.settings`.

    Artists whose gid is `series(k)` are shown and hidden by the page's toggles. If `read` names the
    x axis of the first plot, a slider reads the values of its labelled lines.
    """

    drawn: Figure
    caption: str
    """What there is to see, in a sentence or two: also for those who cannot."""
    read: str = ""


class Fold(NamedTuple):
    """Parts that are hidden until somebody wants them (and on paper, shown)."""

    heading: str
    parts: "Sequence[Part]"


Part = Text | Bullets | Code | Table | Picture | Fold


class Section(NamedTuple):
    heading: str
    parts: Sequence[Part]


class Page(NamedTuple):
    title: str
    lead: str
    """What this is and what it comes down to."""
    sections: Sequence[Section]
    toggles: Sequence[str] = ()
    """Names of the series that all figures share, by place: each gets a toggle."""


def html(page: Page) -> str:
    """The page as one file."""
    numbers = count(1)
    names = _anchors(page.sections)
    body = [
        f'<section aria-labelledby="{name}"><h2 id="{name}">{escape(section.heading)}</h2>'
        + "".join(_part(part, numbers, page.toggles) for part in section.parts)
        + "</section>"
        for name, section in zip(names, page.sections, strict=True)
    ]
    links = "".join(
        f'<li><a href="#{name}">{escape(section.heading)}</a></li>'
        for name, section in zip(names, page.sections, strict=True)
    )
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<meta name="generator" content="turnout {__version__}">'
        '<meta name="color-scheme" content="light dark">'
        '<link rel="icon" href="data:,">'  # or a server would be asked for one
        f"<title>{escape(page.title)}</title><style>{_asset('page.css')}</style></head>\n<body>"
        '<a class="skip" href="#content">Skip to the content</a>'
        f"<header><h1>{escape(page.title)}</h1>"
        '<button type="button" id="scheme" hidden>Dark</button>'
        f"<p>{_inline(page.lead)}</p>"
        f'<nav aria-label="Sections"><ul>{links}</ul></nav></header>\n'
        + _toggles(page.toggles)
        + f'<main id="content">{"".join(body)}</main>\n'
        f"<footer>Written by turnout {__version__}.</footer>"
        f"<script>{_asset('page.js')}</script></body></html>\n"
    )


def keep(page: Page, path: Path) -> Path:
    """Write the page to a file."""
    write(path, html(page))
    return path


def _asset(name: str) -> str:
    return (files("turnout.report") / name).read_text(encoding="utf-8")


def _anchors(sections: Sequence[Section]) -> list[str]:
    return [
        re.sub(r"[^a-z0-9]+", "-", f"{section.heading.lower()}-{place}").strip("-")
        for place, section in enumerate(sections)
    ]


def _inline(text: str) -> str:
    """Escaped, with `code` between backticks.

    >>> _inline("a < b: `x`")
    'a &lt; b: <code>x</code>'
    """
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text))


def _toggles(names: Sequence[str]) -> str:
    if not names:
        return ""
    boxes = "".join(
        f'<label><input type="checkbox" checked data-toggles="{place}">{swatch(place)}'
        f"<span>{escape(name)}</span></label>"
        for place, name in enumerate(names)
    )
    return (
        f'<fieldset class="toggles"><legend>Show</legend>{boxes}'
        '<button type="button" data-all hidden>None</button></fieldset>\n'
    )


def _part(part: Part, numbers: Iterator[int], toggles: Sequence[str]) -> str:
    match part:
        case Text(text):
            return f"<p>{_inline(text)}</p>"
        case Bullets(items):
            return "<ul>" + "".join(f"<li>{_inline(item)}</li>" for item in items) + "</ul>"
        case Code(text):
            return f'<pre tabindex="0"><code>{escape(text)}</code></pre>'
        case Table():
            return _table(part, numbers, toggles)
        case Picture(drawn, caption, read):
            number = next(numbers)
            return (
                f'<figure id="figure-{number}">{drawing(drawn, f"f{number}", caption, read)}'
                f"<figcaption>{_inline(caption)}</figcaption></figure>"
            )
        case Fold(heading, parts):
            inside = "".join(_part(each, numbers, toggles) for each in parts)
            return f"<details><summary>{escape(heading)}</summary>{inside}</details>"


def _table(table: Table, numbers: Iterator[int], toggles: Sequence[str]) -> str:
    numeric = [
        all(_is_number(row[k]) for row in table.rows) and k > 0 for k in range(len(table.heads))
    ]
    classes = [' class="number"' if each else "" for each in numeric]
    heads = "".join(
        f'<th scope="col"{kind}>{_inline(head)}</th>'
        for kind, head in zip(classes, table.heads, strict=True)
    )
    rows = ""
    for name, *cells in table.rows:
        mark = swatch(toggles.index(name)) if name in toggles else ""
        rows += f'<tr><th scope="row">{mark}{_cell(name)}</th>'
        rows += "".join(
            f"<td{kind}>{_cell(cell)}</td>" for kind, cell in zip(classes[1:], cells, strict=True)
        )
        rows += "</tr>"
    number = next(numbers)
    # Beside the table, not in it: on a phone a caption would be as wide as all columns.
    return (
        f'<p class="caption" id="caption-{number}">{_inline(table.caption)}</p>'
        f'<div class="scroll" role="region" tabindex="0" aria-labelledby="caption-{number}">'
        f'<table aria-labelledby="caption-{number}"><thead><tr>{heads}</tr></thead>'
        f"<tbody>{rows}</tbody></table></div>"
    )


def _cell(text: str) -> str:
    return f"<strong>{_inline(text)}</strong>" if isinstance(text, Best) else _inline(text)


def _is_number(text: str) -> bool:
    """Is this a number, with its spread and unit if it has them, or a place left empty?

    >>> [_is_number(text) for text in ("84.1 ±0.4", "12 MB", "–", "", "FedAU")]
    [True, True, True, True, False]
    """
    return text in ("", "–", "diverged") or re.match(r"[<−+-]?\d", text) is not None
