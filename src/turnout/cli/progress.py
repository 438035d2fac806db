"""Live progress on stderr: a display on terminals, now and then a line elsewhere."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import Enum
from typing import NamedTuple

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from turnout.cli.screen import stderr
from turnout.cli.standing import Row, Standing, pace, took_part
from turnout.evaluate import Metrics
from turnout.experiments.cells import Place
from turnout.experiments.config import Config
from turnout.experiments.methods import labels
from turnout.experiments.run import Watch
from turnout.simulator import Round
from turnout.wording import duration

PATIENCE = 10.0
"""Seconds before the first line: what is over by then needs none."""
EVERY, APART = 30.0, 3.0
"""Seconds after which there is another line, and before which there is none."""


class Telling(Enum):
    """How progress is told."""

    not_at_all = "not at all"
    to_people = "to people"
    as_json = "as JSON"


class Watching(NamedTuple):
    """What is to be told: which cells train together, and each round."""

    planned: Callable[[list[list[Place]]], None]
    watch: Watch


@contextmanager
def progress(
    config: Config, telling: Telling, jobs: int = 1, console: Console | None = None
) -> Iterator[Watching | None]:
    """Somebody to tell; None where nobody looks."""
    console = console or stderr()
    if telling is Telling.not_at_all:
        yield None
        return
    cells = [(label, seed) for seed in config.run.seeds for label in labels(config.algorithm)]
    standing = Standing(cells, config.run.rounds, jobs)

    def planned(groups: list[list[Place]]) -> None:
        standing.plan([[(place.label, place.seed) for place in group] for group in groups])

    if telling is Telling.as_json or not console.is_terminal:
        say = as_json if telling is Telling.as_json else line
        watch = lines(standing, lambda: console.out(say(standing), highlight=False))
        yield Watching(planned, watch)
        return
    display = _Display(standing)
    with Live(display, console=console, transient=True, refresh_per_second=5):
        yield Watching(planned, standing.hear)


def lines(standing: Standing, say: Callable[[], None]) -> Watch:
    """Say something when a cell ends or a while has passed, if the whole takes long enough."""
    said = standing.began + PATIENCE - APART

    def watch(place: Place, happened: Round, metrics: Metrics | None) -> None:
        nonlocal said
        standing.hear(place, happened, metrics)
        ended = happened.round + 1 == standing.rounds
        if standing.clock() - said >= (APART if ended else EVERY):
            said = standing.clock()
            say()

    return watch


def line(standing: Standing) -> str:
    """One line of plain text on the newest cell and on all of them."""
    assert standing.newest is not None  # there is nothing to say before a first round
    (label, seed), heard = standing.cells[standing.newest], standing.heard[standing.newest]
    row = next(row for row in standing.rows() if row.label == label)
    own = [f"round {heard.round} of {standing.rounds}", row.score, took_part(heard)]
    cells = len(standing.cells)
    among = [f"{standing.over} of {cells} cells done"] if cells > 1 else []
    return f"{label}, seed {seed}: {_listed(own)}; {_listed([*among, *_times(standing)])}"


def as_json(standing: Standing) -> str:
    """The same as an object of JSON."""
    assert standing.newest is not None
    (label, seed), heard = standing.cells[standing.newest], standing.heard[standing.newest]
    return json.dumps(
        {
            "algorithm": label,
            "seed": seed,
            "round": heard.round,
            "rounds": standing.rounds,
            "test_accuracy": heard.accuracy,
            "test_loss": heard.loss,
            "delivered": heard.took_part,
            "cells_done": standing.over,
            "cells": len(standing.cells),
            "rounds_per_second": standing.rate,
            "seconds_left": standing.left,
        }
    )


def _listed(parts: list[str]) -> str:
    return ", ".join(part for part in parts if part)


def _times(standing: Standing) -> list[str]:
    rate, left = standing.rate, standing.left
    if rate is None or left is None:
        return []
    return [pace(rate), f"{duration(left)} left"]


class _Display:
    """What a terminal shows: a bar, and above it a row a method where there are several cells."""

    def __init__(self, standing: Standing) -> None:
        self.standing = standing

    def __rich_console__(self, console: Console, options: object) -> Iterator[RenderableType]:
        standing = self.standing
        if len(standing.cells) == 1:
            yield self._foot(_single(standing), console.width)
            return
        rows = standing.rows()
        shown = fitting(rows, console.height - 5)
        yield Group(
            _table(standing, shown, len(rows) - len(shown)),
            self._foot(
                [
                    f"{standing.over} of {len(standing.cells)} cells done",
                    *_times(standing),
                ],
                console.width,
            ),
        )

    def _foot(self, words: list[str], width: int) -> RenderableType:
        text = _listed(words) or "starting"
        bar = ProgressBar(
            total=self.standing.total,
            completed=self.standing.done,
            width=max(10, min(40, width - len(text) - 3)),
        )
        foot = Table.grid(padding=(0, 2, 0, 0))
        foot.add_row(bar, Text(text, no_wrap=True, overflow="ellipsis"))
        return foot


def _single(standing: Standing) -> list[str]:
    if standing.newest is None:
        return []
    heard, (row,) = standing.heard[standing.newest], standing.rows()
    return [
        f"{row.label}: round {heard.round} of {standing.rounds}",
        row.score,
        took_part(heard),
        *_times(standing),
    ]


def fitting(rows: list[Row], height: int) -> list[Row]:
    """As many rows as there is room for: those at work first, then the latest that have begun."""
    if len(rows) <= max(height, 3):
        return rows
    rank = [(row.at_work, row.newest is not None, place) for place, row in enumerate(rows)]
    best = sorted(range(len(rows)), key=lambda place: rank[place], reverse=True)[: max(height, 3)]
    return [rows[place] for place in sorted(best)]


def _table(standing: Standing, rows: list[Row], hidden: int) -> Table:
    table = Table(box=None, header_style="dim", pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("", no_wrap=True, overflow="ellipsis")
    several = any(row.seeds > 1 for row in rows)
    heads = [*(["seeds done"] if several else []), "round", "so far", "took part"]
    for head in heads:
        table.add_column(head, justify="right", no_wrap=True)
    for row in rows:
        heard = row.newest
        counts = [f"{row.over} of {row.seeds}"] if several else []
        if heard is None:
            cells = [*counts, "", "", ""]
        else:
            came = "server" if heard.took_part is None else str(heard.took_part)
            at_work = row.at_work
            where = f"{heard.round} of {standing.rounds}" if at_work else "done" if row.over else ""
            cells = [*counts, where, row.score, came if at_work else ""]
        style = "" if row.at_work else "dim"
        table.add_row(row.label, *cells, style=style)
    if hidden:
        table.add_row(Text(f"and {hidden} more", style="dim"))
    return table
