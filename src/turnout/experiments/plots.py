"""The plots of a run directory: each answers one question, and is left out if it has no answer."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter
from numpy.typing import NDArray

from turnout.experiments.results import Result, Results
from turnout.experiments.style import Look, figure, look, save, settings

Floats = NDArray[np.float64]

_SMOOTH_ABOVE = 120
"""Curves with more points than this are smoothed by a running mean."""
_HEAT_ROWS, _HEAT_COLUMNS = 300, 600
"""A heat map is thinned to about so many clients × rounds."""


def draw(results: Results, folder: Path) -> list[Path]:
    """All plots that the results can fill, as PNG and SVG."""
    folder.mkdir(exist_ok=True)
    saved = []
    with settings():
        for name, make in PLOTS.items():
            drawn = make(results)
            if drawn is not None:
                saved += save(drawn, folder / name)
    return saved


def accuracy(results: Results) -> Figure | None:
    """How does each method do over the rounds?"""
    metric = "test_accuracy"
    if not any(cell.curve(metric)[1] for cell in results.cells):
        metric = "test_loss"
    drawn = figure()
    axes = drawn.subplots()
    percent = 100 if metric == "test_accuracy" else 1
    window = 1
    for place, label in enumerate(results.labels()):
        curves = [cell.curve(metric) for cell in results.of(label) if cell.curve(metric)[1]]
        if not curves:
            continue
        shortest = min(len(values) for _, values in curves)  # a diverged cell has fewer
        rounds = np.array(curves[0][0][:shortest])
        values = percent * np.array([values[:shortest] for _, values in curves])
        window = max(1, shortest // (_SMOOTH_ABOVE // 2)) if shortest > _SMOOTH_ABOVE else 1
        values, rounds = _smooth(values, window), rounds[window - 1 :]
        _band(axes, rounds, values, label, look(place), percent)
    axes.set_xlabel("round" if window == 1 else f"round (running mean of {window} evaluations)")
    axes.set_ylabel("test accuracy (%)" if percent == 100 else "test loss")
    if percent == 1 and all(line.get_ydata().min() > 0 for line in axes.lines):  # type: ignore[union-attr]
        axes.set_yscale("log")
        _log_ticks(axes.yaxis)
    axes.set_title(_title(results, "Test accuracy" if percent == 100 else "Test loss"))
    axes.margins(x=0.01)
    _legend(drawn, axes)
    return drawn


def _band(
    axes: Axes, rounds: Floats, values: Floats, label: str, style: Look, percent: int
) -> None:
    middle = values.mean(0)
    axes.plot(
        rounds, middle, label=label, color=style.colour, linestyle=style.dashes, linewidth=1.7
    )
    if len(values) > 1:
        spread = values.std(0, ddof=1)
        low = middle - spread if percent == 1 else np.maximum(middle - spread, 0)
        high = middle + spread if percent == 1 else np.minimum(middle + spread, 100)
        axes.fill_between(rounds, low, high, color=style.colour, alpha=0.13, linewidth=0)


def _smooth(values: Floats, window: int) -> Floats:
    if window == 1:
        return values
    sums = np.cumsum(np.pad(values, ((0, 0), (1, 0))), axis=1)
    return (sums[:, window:] - sums[:, :-window]) / window


def served(results: Results) -> Figure | None:
    """Whom does each method serve: those who came, and those who never did?"""
    labels = [label for label in results.labels() if any(c.clients for c in results.of(label))]
    groups = {
        label: [_groups(cell) for cell in results.of(label) if cell.clients] for label in labels
    }
    if not any(came is not None for each in groups.values() for came, _ in each):
        return None
    drawn = figure(8.0, 1.4 + 0.42 * len(labels))
    axes = drawn.subplots()
    kinds = (("clients that came", "#0072B2", "o"), ("clients that never came", "#D55E00", "D"))
    for kind, (name, colour, marker) in enumerate(kinds):
        for place, label in enumerate(labels):
            found = [each[kind] for each in groups[label]]
            values = 100 * np.array([value for value in found if value is not None])
            if len(values):
                spread = values.std(ddof=1) if len(values) > 1 else 0.0
                axes.errorbar(
                    values.mean(), place + 0.12 * (2 * kind - 1), xerr=spread, color=colour,
                    marker=marker, markersize=6, capsize=2.5, linewidth=1.2, linestyle="none",
                    label=name if name not in axes.get_legend_handles_labels()[1] else None,
                )  # fmt: skip
    axes.set_yticks(range(len(labels)), labels)
    axes.invert_yaxis()
    axes.grid(axis="y", visible=False)
    axes.set_xlim(-3, 103)
    axes.set_xlabel("accuracy on the clients' own data, after the last round (%)")
    axes.set_title(_title(results, "Who is served"))
    drawn.legend(loc="outside lower center", ncols=2)
    return drawn


def _groups(cell: Result) -> tuple[float | None, float | None]:
    """Mean accuracy of clients that delivered, and of those that never did."""
    table = [(row["delivered"], row["accuracy"]) for row in cell.clients]
    came = [a for times, a in table if times and a is not None]
    never = [a for times, a in table if not times and a is not None]
    return (
        float(np.mean(came)) if came else None,
        float(np.mean(never)) if never else None,
    )


def classes(results: Results) -> Figure | None:
    """Which classes does each method know, by how much of the class ever took part?"""
    labels = [label for label in results.labels() if any(c.classes for c in results.of(label))]
    if not labels or len(results.of(labels[0])[0].classes) > 30:
        return None
    cells = {label: next(c for c in results.of(label) if c.classes) for label in labels}
    first = cells[labels[0]]
    seen = np.array([(row["samples_seen"] or 0) / (row["samples"] or 1) for row in first.classes])
    order = np.argsort(-seen, kind="stable")
    table = np.array(
        [
            [
                100 * value
                if (value := cells[label].classes[c]["accuracy"]) is not None
                else np.nan
                for c in order
            ]
            for label in labels
        ]
    )
    drawn = figure(8.0, 2.1 + 0.34 * len(labels))
    axes = drawn.subplots()
    image = axes.imshow(table, aspect="auto", cmap="cividis", vmin=0, vmax=100)
    for row, column in np.ndindex(*table.shape):
        if np.isfinite(table[row, column]):
            shade = "black" if table[row, column] > 55 else "white"
            axes.text(
                column,
                row,
                f"{table[row, column]:.0f}",
                ha="center",
                va="center",
                color=shade,
                fontsize=8,
            )
    axes.set_yticks(range(len(labels)), labels)
    names = [f"{first.classes[c]['class']:.0f}\n{100 * seen[c]:.0f} %" for c in order]
    axes.set_xticks(range(len(order)), names)
    axes.set_xlabel("class, and the share of its training data whose clients ever delivered")
    axes.grid(visible=False)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    axes.set_title(f"Test accuracy of each class, after the last round (seed {first.seed})")
    drawn.colorbar(image, ax=axes, label="test accuracy (%)", shrink=0.9)
    return drawn


def participation(results: Results) -> Figure | None:
    """Who delivered when?"""
    cell = results.cells[0]
    log = cell.log()
    if log is None:
        return None
    rates = [row["rate"] for row in cell.clients]
    came = np.bincount(log.client[log.delivered], minlength=log.clients)
    by = came if None in rates else np.array(rates, dtype=float)
    rank = np.empty(log.clients, dtype=np.int64)
    rank[np.lexsort((-came, -by))] = np.arange(log.clients)
    rows, columns = min(log.clients, _HEAT_ROWS), min(log.rounds, _HEAT_COLUMNS)
    # Counted straight into the thinned table: the full one may not fit into memory.
    row = rank[log.client[log.delivered]] * rows // log.clients
    column = log.round[log.delivered] * columns // log.rounds
    table = np.zeros((rows, columns))
    np.add.at(table, (row, column), 1)
    share = np.bincount(np.arange(log.clients) * rows // log.clients, minlength=rows)[:, None]
    width = np.bincount(np.arange(log.rounds) * columns // log.rounds, minlength=columns)
    table /= share * width
    drawn = figure(8.0, 4.4)
    axes = drawn.subplots()
    image = axes.imshow(
        table, aspect="auto", cmap="Blues", vmin=0, vmax=1, interpolation="nearest",
        extent=(0, log.rounds, log.clients, 0),
    )  # fmt: skip
    never = int((came == 0).sum())
    if never:
        axes.axhline(log.clients - never, color="#D55E00", linewidth=1.2)
        axes.text(
            log.rounds * 0.99, log.clients - never / 2, f"{never} never deliver",
            color="#D55E00", ha="right", va="center",
        )  # fmt: skip
    axes.grid(visible=False)
    axes.set_xlabel("round")
    axes.set_ylabel("client, from frequent to rare")
    axes.set_title(f"Who delivered when ({cell.label}, seed {cell.seed})")
    thinned = rows * columns < log.clients * log.rounds
    if thinned:
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
        axes.scatter(often, weight, s=9, color=style.colour, alpha=0.2, linewidths=0)
        axes.plot(
            *_binned(often, weight), color=style.colour, linestyle=style.dashes,
            marker=style.marker, markersize=5, linewidth=1.5, label=label,
        )  # fmt: skip
    if not axes.get_legend_handles_labels()[1]:
        return None
    axes.set_xscale("log")
    axes.set_yscale("log")
    _log_ticks(axes.xaxis, " %", 100)
    _log_ticks(axes.yaxis)
    asked = "expected share of rounds" if known else "share of rounds"
    axes.set_xlabel(f"{asked} in which the client delivers")
    axes.set_ylabel("what it counted for (1: as much as\nthe average of those that came)")
    axes.set_title(_title(results, "Effective weights", spread=False))
    _legend(drawn, axes)
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


def _log_ticks(axis: Axis, unit: str = "", scale: float = 1.0) -> None:
    """Ticks of a logarithmic axis at 1, 2 and 5, written as plain numbers."""
    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{scale * value:g}{unit}"))
    axis.set_minor_formatter(NullFormatter())


def _title(results: Results, what: str, spread: bool = True) -> str:
    seeds = len({cell.seed for cell in results.cells})
    of = f"{'mean ± std of ' if spread else ''}{seeds} seeds"
    return f"{what}: {results.config.run.name}" + (f", {of}" if seeds > 1 else "")


def _legend(drawn: Figure, axes: Axes) -> None:
    if len(axes.get_legend_handles_labels()[1]) > 0:
        drawn.legend(loc="outside right center", handlelength=2.8)


PLOTS: dict[str, Callable[[Results], Figure | None]] = {
    "accuracy": accuracy,
    "served": served,
    "classes": classes,
    "participation": participation,
    "rates": rates,
    "weights": weights,
}
