"""The motivating example of Generalized FedAvg: paths on quadratics, beside their closed form."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from turnout.experiments.style import figure, settings
from turnout.reproduce.grid import Cell, cells
from turnout.reproduce.judge import MARKS, Entry, Printed, Verdict
from turnout.reproduce.origin import origin
from turnout.reproduce.report import Report
from turnout.reproduce.request import Request
from turnout.reproduce.values import measured

Floats = NDArray[np.float64]
CLOSE = 1e-6


def panels(request: Request) -> Report:
    """Play every panel and hold its path against the closed form."""
    chosen = cells(request.item, request.scale, request.seeds)
    played = request.play(chosen)
    rows, entries, found = [], [], []
    shown = [["", "last distance to x*", "largest deviation from the closed form", ""]]
    for cell, each in zip(chosen, played, strict=True):
        path = np.array([m["x"] for m in each.record["metrics"]])
        apart = float(np.abs(path - closed_form(cell)).max())
        away = float(np.linalg.norm(path[-1] - _centres(cell).mean(0)))
        verdict: Verdict = "matches" if apart <= CLOSE else "differs"
        (label, *_) = cell.point.values()
        why = "" if verdict == "matches" else f"more than {CLOSE:g} away from the closed form"
        entries.append(Entry(label, "", measured([apart], 9), Printed(0.0, CLOSE), verdict, why))
        rows.append({"panel": label, "distance": away, "deviation": apart, "verdict": verdict})
        shown.append([label, f"{away:.4f}", f"{apart:.1e}", MARKS[verdict]])
        found.append(path)
    drawn = _figure(chosen, found)
    return Report(request, shown, rows, entries, drawn, origin=origin(played))


def closed_form(cell: Cell) -> Floats:
    """The path x_0, x_1, … of clients that come one a round in turn.

    With keep = (1 − γ)^I a round maps x to z + keep·(x − z), and a cycle of P = N rounds maps it
    to x' + (1 − η·(1 − keep^N))·(x − x'), where x' is the cycle's fixed point.
    """
    config, z = cell.config, _centres(cell)
    (method,) = config.algorithm
    factor, clients = float(method.options.get("factor", 1.0)), len(z)
    keep = (1 - config.local.lr) ** (config.local.steps or 1)
    powers = keep ** np.arange(clients)
    fixed = (1 - keep) * (powers[::-1] @ z) / (1 - keep**clients)
    start = np.array(config.model.options["start"], dtype=np.float64)
    path = [start]
    for t in range(config.run.rounds):
        cycle, place = divmod(t, clients)
        begin = fixed + (1 - factor * (1 - keep**clients)) ** cycle * (start - fixed)
        pulls = powers[place::-1] @ z[: place + 1] * (1 - keep)
        x = keep ** (place + 1) * begin + pulls
        path.append(begin + factor * (x - begin) if place == clients - 1 else x)
    return np.array(path)


def _centres(cell: Cell) -> Floats:
    return np.array(cell.config.data.options["z"], dtype=np.float64)


def _figure(chosen: Sequence[Cell], paths: Sequence[Floats]) -> Figure:
    with settings():
        across = min(4, len(paths))
        down = -(-len(paths) // across)
        drawn = figure(3.1 * across, 3.0 * down)
        grid = drawn.subplots(down, across, sharex=True, sharey=True, squeeze=False)
        all_axes: list[Axes] = list(grid.ravel())
        for axes, cell, path in zip(all_axes, chosen, paths, strict=False):
            z = _centres(cell)
            axes.plot(*path.T, color="#0072B2", marker="o", markersize=3, linewidth=1)
            axes.plot(*z.T, color="#D55E00", marker="^", linestyle="none", label="$z_n$")
            axes.plot(
                *z.mean(0),
                color="#000000",
                marker="*",
                markersize=10,
                linestyle="none",
                label="$x^*$",
            )
            axes.set_title(next(iter(cell.point.values())))
        drawn.supxlabel("first coordinate of $x$", fontsize=10)
        drawn.supylabel("second coordinate of $x$", fontsize=10)
        all_axes[0].legend()
        return drawn
