"""Where output goes: results to stdout, progress and notes to stderr."""

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from turnout.experiments.summary import Summary
from turnout.experiments.table import fitting, headings, label, plain, with_leaders


def stdout() -> Console:
    return Console(highlight=False, markup=False)


def stderr() -> Console:
    return Console(stderr=True, highlight=False, markup=False)


def say(text: str, console: Console | None = None, style: str = "") -> None:
    """A line of prose: folded on terminals, whole in pipes."""
    console = console or stdout()
    console.print(text, style=style, soft_wrap=not console.is_terminal)


def print_table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Rows of text: folded to fit a terminal, aligned and unfolded in a pipe."""
    console = stdout()
    if not console.is_terminal:
        everything = [heads, *rows]
        widths = [max(len(row[k]) for row in everything) for k in range(len(heads))]
        for row in everything:
            line = "  ".join(f"{text:<{width}}" for text, width in zip(row, widths, strict=True))
            console.out(line.rstrip(), highlight=False)
        return
    table = Table(box=None, header_style="dim", pad_edge=False, padding=(0, 2, 0, 0))
    for place, head in enumerate(heads):
        table.add_column(
            head, style="bold" if place == 0 else "", overflow="fold", no_wrap=place == 0
        )
    for row in rows:
        table.add_row(*row)
    console.print(table)


def print_summary(summary: Summary) -> None:
    """The comparison: a table on terminals, aligned text in pipes."""
    console = stdout()
    if not console.is_terminal:
        console.out(plain(summary), end="", highlight=False)
        return
    columns = fitting(summary, console.width)
    table = Table(box=None, header_style="bold", pad_edge=False, padding=(0, 3, 0, 0))
    table.add_column("", no_wrap=True)
    for head in headings(summary, columns):
        table.add_column("\n".join(head), justify="right", vertical="bottom", no_wrap=True)
    for line, pairs in with_leaders(summary, columns):
        texts = [Text(text, style="bold" if line.label == best else "") for text, best in pairs]
        table.add_row(Text(label(line)), *texts)
    console.print(table)
    notes = []
    if any(line.seeds > 1 for line in summary.lines):
        notes.append("Mean ± standard deviation over seeds; bold: best by more than that.")
    if len(columns) < len(summary.columns):
        notes.append("Columns that do not fit here are in summary.csv.")
    for note in notes:
        say(note, console, style="dim")
