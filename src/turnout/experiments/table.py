"""The summary as an aligned table: for terminals, for pipes, and as Markdown and CSV."""

import csv
import io
from collections.abc import Iterator, Sequence

from turnout.experiments.summary import Column, Entry, Line, Summary, leader

_FIRST_TO_GO = (
    *("client_memory", "sent", "server_memory"),
    *("best", "spread_loss", "seconds", "train_loss", "spread", "final"),
)
"""What a narrow terminal does without, in this order; files have everything."""


def cells(summary: Summary, columns: Sequence[Column]) -> list[list[str]]:
    """The text of every cell, a row a method, without the label."""
    return [[_text(line, column) for column in columns] for line in summary.lines]


def with_leaders(
    summary: Summary, columns: Sequence[Column]
) -> Iterator[tuple[Line, list[tuple[str, str | None]]]]:
    """Each line with its texts, and beside each text which method leads that column."""
    leaders = [leader(summary, column) for column in columns]
    for line, row in zip(summary.lines, cells(summary, columns), strict=True):
        yield line, list(zip(row, leaders, strict=True))


def _text(line: Line, column: Column) -> str:
    entry = line.entries.get(column.key)
    if entry is not None:
        # What is the same in every seed by nature, as memory is, has no spread to show.
        fixed = not column.better and entry.std == 0
        return shown(entry._replace(std=None) if fixed else entry, column.digits)
    return "diverged" if line.diverged and column.better else "–"


def shown(entry: Entry, digits: int) -> str:
    """Mean ± standard deviation.

    >>> shown(Entry(84.061, 0.43, 3), 1)
    '84.1 ±0.4'
    """
    if entry.std is None:
        return f"{entry.mean:.{digits}f}"
    return f"{entry.mean:.{digits}f} ±{entry.std:.{digits}f}"


def label(line: Line) -> str:
    if not line.diverged or len(line.diverged) == line.seeds:
        return line.label
    return f"{line.label} ({line.seeds - len(line.diverged)} of {line.seeds} seeds)"


def plain(summary: Summary, width: int | None = None) -> str:
    """Aligned text; a * marks what is best beyond the spread over seeds."""
    columns = fitting(summary, width)
    heads = headings(summary, columns)
    body = [
        [label(line), *(text + ("*" if line.label == best else " ") for text, best in pairs)]
        for line, pairs in with_leaders(summary, columns)
    ]
    height = max(map(len, heads))
    stacks = [[""] * height, *([""] * (height - len(head)) + head for head in heads)]
    top = [[stack[k] + " " for stack in stacks] for k in range(height)]
    rows = [*top, *body]
    widths = [max(len(row[k]) for row in rows) for k in range(len(columns) + 1)]
    lines = ["  ".join(_aligned(row, widths)).rstrip() for row in rows]
    rule = "-" * max(map(len, lines))
    return "\n".join([*lines[:height], rule, *lines[height:]]) + "\n"


def _aligned(row: Sequence[str], widths: Sequence[int]) -> list[str]:
    name, *numbers = row
    pairs = zip(numbers, widths[1:], strict=True)
    return [f"{name:<{widths[0]}}", *(f"{text:>{width}}" for text, width in pairs)]


def headings(summary: Summary, columns: Sequence[Column]) -> list[list[str]]:
    """Each heading over as many lines as its words need in a column no wider than its numbers."""
    texts = cells(summary, columns)
    return [
        _wrapped(summary.heading(column), max(len(row[k]) for row in texts))
        for k, column in enumerate(columns)
    ]


def _wrapped(text: str, width: int) -> list[str]:
    lines: list[str] = []
    for word in text.split():
        if lines and len(lines[-1]) + 1 + len(word) <= width:
            lines[-1] += " " + word
        else:
            lines.append(word)
    return lines


def fitting(summary: Summary, width: int | None) -> list[Column]:
    """As many columns as `width` characters hold, two of them between columns; None: all."""
    columns = list(summary.columns)
    for key in _FIRST_TO_GO:
        if width is None or len(columns) <= 2 or _width(summary, columns) <= width:
            break
        columns = [column for column in columns if column.key != key]
    return columns


def _width(summary: Summary, columns: Sequence[Column]) -> int:
    texts = cells(summary, columns)
    names = max(len(label(line)) for line in summary.lines)
    wide = [
        max(*(len(row[k]) for row in texts), *map(len, head))
        for k, head in enumerate(headings(summary, columns))
    ]
    # A mark may follow each number.
    return names + sum(3 + each for each in wide)


def markdown(summary: Summary) -> str:
    """A Markdown table, best in bold where the difference is beyond the spread."""
    rows = [["", *(summary.heading(column) for column in summary.columns)]]
    rows.append(["---", *("--:" for _ in summary.columns)])
    for line, pairs in with_leaders(summary, summary.columns):
        marked = [f"**{text}**" if line.label == best else text for text, best in pairs]
        rows.append([label(line), *marked])
    return "\n".join("| " + " | ".join(row) + " |" for row in rows) + "\n"


def as_csv(summary: Summary) -> str:
    """Means, standard deviations and numbers of seeds, in the units of the headings."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    keys = [column.key for column in summary.columns]
    writer.writerow(
        ["algorithm", "diverged", *(f"{k}_{part}" for k in keys for part in Entry._fields)]
    )
    for line in summary.lines:
        entries = [line.entries.get(key) for key in keys]
        values = [value for entry in entries for value in (entry or ("", "", 0))]
        writer.writerow([line.label, len(line.diverged), *("" if v is None else v for v in values)])
    return text.getvalue()
