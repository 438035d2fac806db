"""What clients count for, by how often they come and over the rounds."""

from typing import NamedTuple

import numpy as np
from matplotlib.figure import Figure

from turnout import round as protocol
from turnout.errors import InputError
from turnout.experiments.frames import Floats, legend, log_ticks, thinned, title
from turnout.experiments.methods import Known, algorithm, methods
from turnout.experiments.results import Result, Results
from turnout.experiments.style import figure, look, series


def weights(results: Results) -> Figure | None:
    """What does a client count for, by how often it comes?

    Methods with memory are left out: a client's stored update counts also while it is away.
    """
    drawn = figure()
    axes = drawn.subplots()
    axes.axhline(1, color="#999999", linewidth=1)
    known = all(row["rate"] is not None for cell in results.cells for row in cell.clients)
    for place, label in enumerate(results.labels()):
        cells = [cell for cell in results.of(label) if cell.clients and not cell.memory]
        points = [_relative_weights(cell, known) for cell in cells]
        points = [each for each in points if len(each[0])]
        if not points:
            continue
        often, weight = (np.concatenate(column) for column in zip(*points, strict=True))
        style = look(place)
        some = np.argsort(often, kind="stable")[thinned(len(often), _CLOUD)]
        axes.scatter(
            often[some],
            weight[some],
            s=9,
            color=style.colour,
            alpha=0.2,
            linewidths=0,
            gid=series(place),
        )
        axes.plot(
            *_binned(often, weight), color=style.colour, linestyle=style.dashes,
            marker=style.marker, markersize=5, linewidth=1.5, label=label, gid=series(place),
        )  # fmt: skip
    if not axes.get_legend_handles_labels()[1]:
        return None
    axes.set_xscale("log")
    axes.set_yscale("log")
    log_ticks(axes.xaxis, " %", 100)
    log_ticks(axes.yaxis)
    asked = "expected share of rounds" if known else "share of rounds"
    axes.set_xlabel(f"{asked} in which the client delivers")
    axes.set_ylabel("what it counted for (1: as much as\nthe average of those that came)")
    axes.set_title(title(results, "Effective weights", spread=False))
    legend(drawn, axes)
    return drawn


def _relative_weights(cell: Result, known: bool) -> tuple[Floats, Floats]:
    """How often each client comes and what it counted for, of those that came at all.

    Relative, because a common factor is no more than a step size.
    """
    rows = [row for row in cell.clients if row["delivered"]]
    often = [row["rate"] if known else (row["delivered"] or 0) / cell.round for row in rows]
    weight = np.array([row["effective_weight"] for row in rows], dtype=float)
    return np.array(often, dtype=float), weight / weight.mean() if weight.any() else weight[:0]


def _binned(x: Floats, y: Floats, bins: int = 8) -> tuple[Floats, Floats]:
    """Means of y in a few bins along x, equally wide on a logarithmic scale."""
    at = np.log(x)
    edges = np.linspace(at.min(), at.max(), bins + 1)[1:-1]
    bin_of = np.digitize(at, edges)
    parts = [np.flatnonzero(bin_of == k) for k in np.unique(bin_of)]
    return (
        np.array([np.exp(at[part].mean()) for part in parts]),
        np.array([y[part].mean() for part in parts]),
    )


_CLOUD = 120
"""A method has no more points than this, evenly from rare to frequent; its line has them all."""
_ENTRIES = 50_000_000
"""Weights are replayed along so many rounds × clients at most."""
_POINTS = 160


class Replayed(NamedTuple):
    """The weights of a few clients, as means over spans of rounds."""

    clients: list[int]
    rates: list[float]
    """How often they come: the expected share of rounds where it is known."""
    rounds: Floats
    weights: Floats
    """[spans, clients]"""


def weights_over_rounds(results: Results) -> Figure | None:
    """How does the weight of a client settle, and where: at 1/p_n?

    For clients from the rarest to the most frequent that came at all, in one seed.
    """
    told = {label: found for label in results.labels() if (found := _replayed(results, label))}
    if not told:
        return None
    first = next(iter(told.values()))
    drawn = figure(8.0, 5.6)
    grid = drawn.subplots(2, 2, sharex=True, squeeze=False).ravel()
    for k, (axes, client, rate) in enumerate(zip(grid, first.clients, first.rates, strict=False)):
        for place, label in enumerate(results.labels()):
            if label not in told:
                continue
            style = look(place)
            axes.plot(
                told[label].rounds, told[label].weights[:, k], label=label, color=style.colour,
                linestyle=style.dashes, linewidth=1.4, gid=series(place),
            )  # fmt: skip
        axes.axhline(1 / rate, color="#999999", linewidth=1)
        axes.set_title(f"client {client}: 1/p = {1 / rate:.3g}", fontsize=9)
        axes.set_yscale("log")
        log_ticks(axes.yaxis)
        axes.margins(x=0.01)
    for axes in grid[len(first.clients) :]:
        axes.set_visible(False)
    drawn.supxlabel("round", fontsize=10)
    drawn.supylabel("weight ω; the grey line is 1/p", fontsize=10)
    legend(drawn, grid[0])
    return drawn


def _replayed(results: Results, label: str) -> Replayed | None:
    """Weights follow from who took part alone, so the log tells them.

    None where they are not the whole story (memory, a gate, a judge), or where there is nothing to replay.
    """
    cell = results.of(label)[0]
    log = cell.log()
    if log is None or cell.memory or log.rounds * log.clients > _ENTRIES:
        return None
    came = np.array([row["delivered"] or 0 for row in cell.clients])
    told = [row["rate"] for row in cell.clients]
    known = None if None in told else np.array(told, dtype=float)
    rates = came / log.rounds if known is None else known
    if not came.any():
        return None
    try:
        method = algorithm(methods(results.config)[label], Known(known))
    except (InputError, KeyError):  # a recipe of the user's own that is not here
        return None
    if method.gate is not None or method.judge is not None:
        return None
    asks = np.array([protocol.asks_clients(method, cell.seed, t) for t in range(log.rounds)])
    seen = np.flatnonzero(came)
    order = seen[np.argsort(rates[seen], kind="stable")]
    some = np.unique(order[np.linspace(0, len(order) - 1, min(4, len(order))).astype(int)])
    some = some[np.argsort(rates[some], kind="stable")]
    omega = protocol.weights(method, log.mask()[asks], some)
    spans = np.array_split(np.arange(len(omega)), min(_POINTS, len(omega)))
    return Replayed(
        some.tolist(),
        rates[some].tolist(),
        np.array([np.flatnonzero(asks)[span].mean() + 1 for span in spans]),
        np.array([omega[span].mean(0) for span in spans]),
    )
