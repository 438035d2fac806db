"""Who took part: when, and as often as intended?"""

from typing import Any

import numpy as np
from matplotlib.colors import LinearSegmentedColormap, to_rgb
from matplotlib.figure import Figure
from numpy.typing import NDArray

from turnout.experiments.results import Results
from turnout.experiments.style import COLOURS, figure

Whole = NDArray[np.integer[Any]]

_HEAT_ROWS, _HEAT_COLUMNS = 300, 600
"""A heat map is thinned to about so many clients × rounds."""

_BLUE = to_rgb(COLOURS[0])
_SHARE = LinearSegmentedColormap.from_list("share", [(*_BLUE, 0.0), (*_BLUE, 1.0)])
"""From nothing to blue, so that light and dark paper both show through."""


def participation(results: Results) -> Figure | None:
    """Who delivered when?"""
    cell = next((c for c in results.cells if c.clients), None)
    log = None if cell is None else cell.log()
    if cell is None or log is None:
        return None
    rates = [row["rate"] for row in cell.clients]
    by = None if None in rates else np.array(rates, dtype=float)
    round, client = log.round[log.delivered], log.client[log.delivered]
    drawn = attendance(round, client, log.rounds, log.clients, by)
    drawn.axes[0].set_title(f"Who delivered when ({cell.label}, seed {cell.seed})")
    return drawn


def attendance(
    round: Whole, client: Whole, rounds: int, clients: int, by: NDArray[np.float64] | None = None
) -> Figure:
    """Who delivered when, the clients from large to small `by` and then as often as they came."""
    came = np.bincount(client, minlength=clients)
    rank = np.empty(clients, dtype=np.int64)
    rank[np.lexsort((-came, -came if by is None else -by))] = np.arange(clients)
    rows, columns = min(clients, _HEAT_ROWS), min(rounds, _HEAT_COLUMNS)
    # Counted straight into the thinned table: the full one may not fit into memory.
    row, column = rank[client] * rows // clients, round.astype(np.int64) * columns // rounds
    table = np.zeros((rows, columns))
    np.add.at(table, (row, column), 1)
    share = np.bincount(np.arange(clients) * rows // clients, minlength=rows)[:, None]
    width = np.bincount(np.arange(rounds) * columns // rounds, minlength=columns)
    table /= share * width
    drawn = figure(8.0, 4.4)
    axes = drawn.subplots()
    image = axes.imshow(
        table, aspect="auto", cmap=_SHARE, vmin=0, vmax=1, interpolation="nearest",
        extent=(0, rounds, clients, 0),
    )  # fmt: skip
    never = int((came == 0).sum())
    if never:
        axes.axhline(clients - never, color="#D55E00", linewidth=1.2)
        room = never > clients / 12  # or the words stand above the line
        axes.text(
            rounds * 0.99, clients - never / 2 if room else clients - never, f"{never} never deliver",
            color="#D55E00", ha="right", va="center" if room else "bottom",
        )  # fmt: skip
    axes.grid(visible=False)
    axes.set_xlabel("round")
    axes.set_ylabel("client, from frequent to rare")
    if rows * columns < clients * rounds:
        drawn.colorbar(image, ax=axes, label="share of rounds delivered")
    return drawn


def rates(results: Results) -> Figure | None:
    """Did clients come as often as intended?"""
    cell = next((c for c in results.cells if c.clients), None)
    if cell is None or any(row["rate"] is None for row in cell.clients):
        return None
    log = cell.log()
    if log is None:
        return None
    asked = len(np.unique(log.round)) or 1
    intended = np.array([row["rate"] for row in cell.clients], dtype=float)
    realised = np.array([row["delivered"] for row in cell.clients], dtype=float) / log.rounds
    drawn = figure(5.2, 4.8)
    axes = drawn.subplots()
    top = 1.08 * max(intended.max(), realised.max(), 1 / asked)
    axes.plot([0, top], [0, top], color="#999999", linewidth=1, label="as intended")
    # Two standard deviations of independent rounds; spells and cycles scatter more, or less.
    p = np.linspace(0, min(top, 1), 200)
    scatter = 2 * np.sqrt(p * (1 - p) / log.rounds)
    axes.fill_between(
        p,
        p - scatter,
        p + scatter,
        color="#999999",
        alpha=0.2,
        linewidth=0,
        label="±2 σ, independent rounds",
    )
    axes.scatter(
        intended, realised, s=16, color="#0072B2", alpha=0.7, linewidths=0, label="a client"
    )
    axes.set_xlim(-0.02 * top, top)
    axes.set_ylim(-0.02 * top, top)
    axes.set_xlabel("intended: expected share of rounds")
    axes.set_ylabel(f"realised: share of {log.rounds} rounds")
    axes.set_title(f"Participation ({cell.label}, seed {cell.seed})")
    axes.legend(loc="upper left")
    return drawn
