"""How methods do over the rounds: mean lines, and bands of one standard deviation over seeds."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from turnout.experiments.frames import Floats, legend, log_ticks, thinned, title
from turnout.experiments.results import Results
from turnout.experiments.style import figure, look, series

_SMOOTH_ABOVE = 120
"""Curves with more points than this are smoothed by a running mean."""


def accuracy(results: Results) -> Figure | None:
    """How accurate is each method over the rounds? Its loss, where there is no accuracy."""
    if not _measured(results, "test_accuracy"):
        return _test_loss(results)
    drawn = _curves(results, "test_accuracy", "Test accuracy", percent=100)
    drawn.axes[0].set_ylabel("test accuracy (%)")
    return drawn


def loss(results: Results) -> Figure | None:
    """And its loss, where accuracy has a plot of its own?"""
    return losses(results) if _measured(results, "test_accuracy") else None


def losses(results: Results) -> Figure | None:
    """Its loss in any case?"""
    return _test_loss(results) if _measured(results, "test_loss") else None


def _measured(results: Results, metric: str) -> bool:
    return any(cell.curve(metric)[1] for cell in results.cells)


def _test_loss(results: Results) -> Figure:
    drawn = _curves(results, "test_loss", "Test loss", percent=1)
    (axes,) = drawn.axes
    axes.set_ylabel("test loss")
    if all(np.asarray(line.get_ydata()).min(initial=1) > 0 for line in axes.lines):
        axes.set_yscale("log")
        log_ticks(axes.yaxis)
    return drawn


def _curves(results: Results, metric: str, what: str, percent: int) -> Figure:
    drawn = figure()
    axes = drawn.subplots()
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
        some = thinned(len(rounds))
        _band(axes, rounds[some], values[:, some], label, place, percent)
    axes.set_xlabel("round" if window == 1 else f"round (running mean of {window} evaluations)")
    axes.set_title(title(results, what))
    axes.margins(x=0.01)
    legend(drawn, axes)
    return drawn


def _band(axes: Axes, rounds: Floats, values: Floats, label: str, place: int, percent: int) -> None:
    middle, style, gid = values.mean(0), look(place), series(place)
    axes.plot(
        rounds, middle, label=label, color=style.colour, linestyle=style.dashes, linewidth=1.7,
        gid=gid,
    )  # fmt: skip
    if len(values) > 1:
        spread = values.std(0, ddof=1)
        low = middle - spread if percent == 1 else np.maximum(middle - spread, 0)
        high = middle + spread if percent == 1 else np.minimum(middle + spread, 100)
        axes.fill_between(rounds, low, high, color=style.colour, alpha=0.13, linewidth=0, gid=gid)


def _smooth(values: Floats, window: int) -> Floats:
    if window == 1:
        return values
    sums = np.cumsum(np.pad(values, ((0, 0), (1, 0))), axis=1)
    return (sums[:, window:] - sums[:, :-window]) / window
