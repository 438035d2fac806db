"""The audit on a terminal."""

from collections.abc import Iterable

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from turnout.audit import words
from turnout.audit.audit import Audit
from turnout.audit.process import LEVEL

_CLASSES = 40


def show(found: Audit, console: Console) -> None:
    """Print who shows up, which process fits, what that does, and what to run."""
    console.print(Padding(Text(words.verdict(found)), (0, 0, 1, 0)))
    for title, body in (
        ("The log", _pairs(words.log(found))),
        ("Who shows up", _pairs(words.who(found))),
        ("Which process", _process(found)),
        ("What it does under plain averaging", _effect(found)),
        ("What to run", _advice(found)),
    ):
        console.print(Text(title, style="bold"))
        console.print(Padding(body, (0, 0, 1, 2)))


def _pairs(pairs: Iterable[tuple[str, str]]) -> Table:
    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for left, right in pairs:
        table.add_row(Text(left), Text(right))
    return table


def _columns(heads: Iterable[str], left: Iterable[int]) -> Table:
    """A table of numbers; the columns `left` are text."""
    table, texts = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0)), set(left)
    for place, head in enumerate(heads):
        table.add_column(head, justify="left" if place in texts else "right", no_wrap=place == 0)
    return table


def _process(found: Audit) -> RenderableType:
    names = _pairs(words.process(found))
    if not found.fit.tests:
        return names
    heads = ("simpler explanation", "statistic", "p", f"at level {LEVEL:g} (Holm)")
    tests = _columns(heads, left=(0, 3))
    for test in found.fit.tests:
        tests.add_row(*words.tested(test))
    return Group(names, Text(), tests, Text(), _pairs(words.fitted(found)))


def _effect(found: Audit) -> RenderableType:
    pairs = _pairs(words.effect(found))
    classes = found.impact.classes
    if classes is None:
        return pairs
    table = _columns(words.CLASS_HEADS, left=(0, 5))
    for row in words.class_rows(found, _CLASSES):
        table.add_row(*map(Text, row))
    rest = len(classes.names) - _CLASSES
    more = [Text(f"and {rest:,} classes that are heard more")] if rest > 0 else []
    return Group(pairs, Text(), table, *more)


def _advice(found: Audit) -> RenderableType:
    advice = found.advice
    head = Text.assemble((advice.method.label, "bold"), words.settings(advice.method))
    return Group(head, _list(advice.reasons), Text("Costs"), _list(advice.costs))


def _list(lines: Iterable[str]) -> Table:
    table = Table.grid(padding=(0, 1))
    table.add_column()
    table.add_column(overflow="fold")
    for line in lines:
        table.add_row("–", Text(line))
    return table
