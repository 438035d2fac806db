"""The leaderboard: every method in every pattern of participation, each with its own step sizes."""

from collections.abc import Sequence
from statistics import fmean
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure

from turnout import round as protocol
from turnout.costs import Costs, costs
from turnout.experiments.style import figure, settings
from turnout.reproduce.evidence import as_cells
from turnout.reproduce.grid import Cell, seeds_of
from turnout.reproduce.item import METHOD, find
from turnout.reproduce.origin import origin
from turnout.reproduce.play import simulation_of
from turnout.reproduce.report import Report
from turnout.reproduce.request import Request
from turnout.reproduce.run import Played
from turnout.reproduce.standings import Gap, Scores, Standing, first, gaps, patterns_of, standings
from turnout.reproduce.table import Text
from turnout.reproduce.tuning import (
    Chosen,
    Sizes,
    cell_at,
    key_of,
    points_of,
    settings_of,
    tune,
)
from turnout.reproduce.values import measured, value

PATTERN = "participation"
FIRST, TIED = "¹", "≈"
NOTES = (
    f"{FIRST} is first in its column, {TIED} within one standard error of the first; ± is the standard "
    "deviation over seeds. A rank is the mean place over patterns and seeds, with 5 % and 95 % points "
    "of that mean if each pattern's seeds are drawn again.",
    "Every method and pattern had as many trials of γ and η_s, on training data held out and with a seed "
    "of its own; the test set has decided nothing.",
)


class Board(NamedTuple):
    """All that was played, and what came of it."""

    chosen: Chosen
    cells: list[Cell]
    played: list[Played]
    trials: list[Played]
    scores: Scores
    standings: list[Standing]


def leaderboard(request: Request) -> Report:
    """Tune, play, rank, and lay out."""
    board = play(request)
    behind = gaps(board.scores)
    rows = _rows(request, board, behind)
    with settings():
        drawn = _figure(board, behind)
    return Report(
        request,
        _shown(board, behind),
        rows,
        [],
        drawn,
        [*NOTES, *_winners(board.scores, behind), *_ours(request, board)],
        origin(board.trials + board.played),
        _costs(board),
        as_cells(board.played, board.cells[0].config.run.tail),
    )


def play(request: Request) -> Board:
    """Whatever of the board has not been played yet; `of` names another board, whose best it takes."""
    item, given = request.item, settings_of(request)
    if "of" in given:
        (other,) = find(item.paper, given["of"])
        before = play(request._replace(item=other))
        methods = [standing.method for standing in before.standings[: given["best"]]]
        methods += [label for label in given["always"] if label not in methods]
        points = points_of(request, methods)
        chosen = {key_of(point): before.chosen[key_of(point)] for point in points}
        trials: list[Played] = []
    else:
        points = points_of(request)
        chosen, trials = tune(request)
    scale = item.scales[request.scale]
    cells = [
        cell_at(request, point, seed, chosen[key_of(point)])
        for seed in seeds_of(item, scale, request.seeds)
        for point in points
    ]
    played = request.play(cells)
    scores: dict[tuple[str, str], list[float]] = {}
    for cell, each in zip(cells, played, strict=True):
        tail = min(cell.config.run.tail, cell.rounds)
        here = scores.setdefault((each.point[METHOD], each.point[PATTERN]), [])
        here.append(value("tail", each.record, tail))
    return Board(chosen, cells, played, trials, scores, standings(scores))


def _shown(board: Board, behind: dict[tuple[str, str], Gap]) -> Text:
    patterns = patterns_of(board.scores)
    table = [["", *patterns, "rank"]]
    for standing in board.standings:
        row = [standing.method]
        for pattern in patterns:
            values = board.scores.get((standing.method, pattern))
            if values is None:
                row.append("–")
                continue
            leads = first(board.scores, pattern) == standing.method
            mark = FIRST if leads else TIED if behind[standing.method, pattern].tied else ""
            ours = measured(values)
            spread = "" if ours.std is None else f" ±{ours.std:.1f}"
            row.append(f"{ours.mean:.1f}{spread} {mark}".rstrip())
        row.append(f"{standing.rank:.1f} ({standing.low:.1f} to {standing.high:.1f})")
        table.append(row)
    return table


def _rows(
    request: Request, board: Board, behind: dict[tuple[str, str], Gap]
) -> list[dict[str, Any]]:
    rows = []
    for standing in board.standings:
        for pattern in patterns_of(board.scores):
            values = board.scores.get((standing.method, pattern))
            if values is None:
                continue
            sizes = _sizes(board.chosen, standing.method, pattern)
            gap = behind[standing.method, pattern]
            here = [p for p in board.played if {standing.method, pattern} <= set(p.point.values())]
            rows.append(
                {
                    "method": standing.method, "participation": pattern, "mean": fmean(values),
                    "std": measured(values).std, "seeds": len(values), "behind": gap.behind,
                    "behind_error": gap.error, "lr": sizes.lr, "server_lr_factor": sizes.factor,
                    "rank": standing.rank, "rank_low": standing.low, "rank_high": standing.high,
                    "diverged": sum(p.record["status"] == "diverged" for p in here),
                    "seconds_each": fmean(p.record["seconds"] for p in here),
                }
            )  # fmt: skip
    return rows


def _sizes(chosen: Chosen, method: str, pattern: str) -> Sizes:
    return next(sizes for key, sizes in chosen.items() if {method, pattern} <= set(key))


def _costs(board: Board) -> Text:
    """What each method asks for beyond the model, and the step sizes that were chosen for it."""
    head = ["", "at the server", "at a client", "down", "up", "sums only", "γ", "η_s factor"]
    table = [head]
    for standing in board.standings:
        cell = next(c for c in board.cells if c.point[METHOD] == standing.method)
        asked, sums = _asked(cell)
        sizes = [sizes for key, sizes in board.chosen.items() if standing.method in key]
        sent = [_bytes(asked.server), _bytes(asked.client), _bytes(asked.down), _bytes(asked.up)]
        spans = [_span(s.lr for s in sizes), _span(s.factor for s in sizes)]
        table.append([standing.method, *sent, "yes" if sums else "no", *spans])
    return table


def _asked(cell: Cell) -> tuple[Costs, bool]:
    simulation = simulation_of(cell.config)
    x = simulation.training.layout.flatten(simulation.training.model.module)
    state = protocol.start(simulation.algorithm, x, simulation.world.clients)
    return costs(simulation.algorithm, state), simulation.algorithm.sums_only


def _bytes(count: int) -> str:
    """A size that people can compare.

    >>> _bytes(0), _bytes(20_000), _bytes(50_900_000)
    ('0', '20 kB', '50.9 MB')
    """
    if count < 1e3:
        return str(count)
    return f"{count / 1e3:.3g} kB" if count < 1e6 else f"{count / 1e6:.3g} MB"


def _span(values: Any) -> str:
    found = sorted(set(values))
    return " to ".join(f"{v:g}" for v in (found if len(found) < 2 else (found[0], found[-1])))


def _winners(scores: Scores, behind: dict[tuple[str, str], Gap]) -> list[str]:
    """Who is first in each pattern, and how far ahead of the next."""
    said = []
    for pattern in patterns_of(scores):
        leader = first(scores, pattern)
        others = {m: gap for (m, where), gap in behind.items() if where == pattern and m != leader}
        text = f"{pattern}: {leader}, {fmean(scores[leader, pattern]):.1f}"
        if others:
            second = min(others, key=lambda method: others[method].behind)
            gap = others[second]
            error = "" if gap.error is None else f" ±{gap.error:.2f}"
            text += f", ahead of {second} by {gap.behind:.2f}{error}"
        said.append(f"{text}.")
    return said


def _ours(request: Request, board: Board) -> list[str]:
    """How the project's own methods fare: first or tied in how many, and never farther behind than."""
    return [
        f"{s.method} is first or within one standard error of the first in {s.tied} of {s.patterns} "
        f"patterns, and behind by {s.worst:.2f} at most."
        for s in board.standings
        if s.method in settings_of(request).get("ours", [])
    ]


def _figure(board: Board, behind: dict[tuple[str, str], Gap]) -> Figure:
    """How far each method is behind the first, as colour and as a number."""
    patterns: Sequence[str] = patterns_of(board.scores)
    methods = [standing.method for standing in board.standings]
    table = np.array(
        [[behind[m, p].behind if (m, p) in behind else np.nan for p in patterns] for m in methods]
    )
    drawn = figure(2.6 + 1.05 * len(patterns), 1.6 + 0.34 * len(methods))
    axes = drawn.subplots()
    image = axes.imshow(table, aspect="auto", cmap="cividis_r", vmin=0, vmax=5)
    for row, column in np.ndindex(*table.shape):
        if np.isfinite(table[row, column]):
            shade = "white" if table[row, column] > 2.2 else "black"
            text = f"{table[row, column]:.1f}"
            axes.text(column, row, text, ha="center", va="center", color=shade, fontsize=8)
    axes.set_yticks(range(len(methods)), methods)
    axes.set_xticks(range(len(patterns)), [p.replace(" ", "\n") for p in patterns])
    axes.grid(visible=False)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    axes.set_title("Points behind the first")
    drawn.colorbar(image, ax=axes, label="points of test accuracy", shrink=0.8, extend="max")
    return drawn
