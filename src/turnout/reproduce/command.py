"""`turnout reproduce`: the papers' tables and figures from the command line."""

import sys
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Annotated

import typer

from turnout.errors import InputError, choose, require
from turnout.experiments.interrupt import interruptible
from turnout.reproduce.item import BOARD, SCALES, catalogue, every, find, read_item
from turnout.reproduce.kinds import reproduce as make
from turnout.reproduce.page import keep as keep_page
from turnout.reproduce.report import keep, plain
from turnout.reproduce.request import Request
from turnout.reproduce.run import Told
from turnout.wording import duration


def reproduce(
    paper: Annotated[
        str | None, typer.Argument(help="safari, fedau, amplified or leaderboard")
    ] = None,
    item: Annotated[
        str | None, typer.Argument(help="a table or figure, or the beginning of its name")
    ] = None,
    listing: Annotated[bool, typer.Option("--list", help="name all items")] = False,
    scale: Annotated[
        str, typer.Option(help="paper: as printed; laptop: up to two hours; smoke: seconds")
    ] = "laptop",
    seeds: Annotated[
        int | None, typer.Option(help="how many; as many as the scale has, unless given")
    ] = None,
    out: Annotated[Path, typer.Option(help="where results and finished cells are kept")] = Path(
        "runs/reproduce"
    ),
    jobs: Annotated[
        int, typer.Option("--jobs", "-j", help="processes; each plays a cell at a time")
    ] = 1,
    trust: Annotated[
        bool, typer.Option("--trust", help="take results of code that has changed since, too")
    ] = False,
    show: Annotated[bool, typer.Option("--show", help="print the item's file and stop")] = False,
) -> None:
    """A table or figure of a paper: its value, ours, and a verdict for each cell.

    `leaderboard` needs no item: it is every method in every pattern of participation, tuned and ranked.

    Cells that are done are kept, so that an interrupted command goes on where it stopped, and
    items that share cells train them once.
    """
    if listing or paper is None:
        typer.echo(contents())
        return
    if item is None and paper != BOARD:
        raise InputError(
            f"item is missing; for {choose('paper', paper, catalogue())} it must be one of "
            + ", ".join(catalogue()[paper])
        )
    choose("scale", scale, SCALES)
    require(seeds is None or seeds >= 1, "seeds", seeds, "at least 1")
    require(jobs >= 1, "jobs", jobs, "at least 1")
    found = find(paper, item) if item is not None else every(paper)
    for each in found:
        if show:
            typer.echo(catalogue()[paper][each.name].read_text(encoding="utf-8"))
            continue
        request = Request(each, scale, seeds, out / "cells", jobs, _say, _pulse(), trust)
        with interruptible() as asked:
            report = make(request._replace(asked=asked))
        typer.echo("\n" + plain(report))
        for path in [*keep(report, out / paper), keep_page(report, out / paper)]:
            typer.echo(f"  {path}")


def contents() -> str:
    """All items with their titles.

    >>> "table-1-mnist" in contents()
    True
    """
    lines = []
    for paper, known in catalogue().items():
        lines.append(paper)
        for name, file in known.items():
            title = read_item(paper, name, file.read_text(encoding="utf-8")).about.title
            lines.append(f"  {name:<22} {title}")
    return "\n".join(lines)


def _say(told: Told) -> None:
    """One line a cell: what it came to, how many are done, and when the last will be."""
    record = told.record
    accuracy = record["metrics"][-1].get("test_accuracy") if record["metrics"] else None
    came = record["status"] if accuracy is None else f"{100 * accuracy:.1f} %"
    company = f", {told.together} trained together" if told.together > 1 else ""
    print(  # noqa: T201 (progress, beside the results on standard output)
        f"{told.done}/{told.total}  {told.cell.name}: {came} after "
        f"{record['seconds'] + record['evaluating']:.0f} s{company}; {duration(told.left)} left",
        file=sys.stderr,
        flush=True,
    )


def _pulse(every: float = 60.0) -> Callable[[int, int], None]:
    """Now and then a word from inside a cell that takes long."""
    said = perf_counter()

    def tell(done: int, rounds: int) -> None:
        nonlocal said
        if perf_counter() - said >= every and done < rounds:
            said = perf_counter()
            print(f"     round {done} of {rounds}", file=sys.stderr, flush=True)  # noqa: T201

    return tell
