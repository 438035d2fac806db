"""What the plots of a run share: titles, legends, ticks, thinning."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter
from numpy.typing import NDArray

from turnout.experiments.results import Results

Floats = NDArray[np.float64]

METHODS = "methods"
"""The gid of a legend of methods, which a page has elsewhere."""
POINTS = 300
"""A line has no more: as many as can be seen."""


def thinned(count: int, most: int = POINTS) -> NDArray[np.int64]:
    """Which of `count` points to draw, the first and the last among them.

    >>> len(thinned(10)), len(thinned(10_000))
    (10, 300)
    """
    return np.unique(np.linspace(0, count - 1, min(count, most)).round().astype(np.int64))


def log_ticks(axis: Axis, unit: str = "", scale: float = 1.0) -> None:
    """Ticks of a logarithmic axis at 1, 2 and 5, written as plain numbers."""
    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{scale * value:g}{unit}"))
    axis.set_minor_formatter(NullFormatter())


def title(results: Results, what: str, spread: bool = True) -> str:
    seeds = len({cell.seed for cell in results.cells})
    of = f"{'mean ± std of ' if spread else ''}{seeds} seeds"
    named = f"{what}: {name}" if (name := results.config.run.name) else what
    return named + (f", {of}" if seeds > 1 else "")


def legend(drawn: Figure, axes: Axes) -> None:
    if len(axes.get_legend_handles_labels()[1]) > 0:
        drawn.legend(loc="outside right center", handlelength=2.8).set_gid(METHODS)
