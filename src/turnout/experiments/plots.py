"""The plots of a run directory: each answers one question, and is left out if it has no answer."""

from collections.abc import Callable
from pathlib import Path

from matplotlib.figure import Figure

from turnout.experiments.curves import accuracy, loss
from turnout.experiments.fairness import classes, deciles, served, spread
from turnout.experiments.presence import participation, rates
from turnout.experiments.results import Results
from turnout.experiments.style import save, settings
from turnout.experiments.weighing import weights, weights_over_rounds

PLOTS: dict[str, Callable[[Results], Figure | None]] = {
    "accuracy": accuracy,
    "loss": loss,
    "served": served,
    "deciles": deciles,
    "spread": spread,
    "classes": classes,
    "participation": participation,
    "rates": rates,
    "weights": weights,
    "weights_over_rounds": weights_over_rounds,
}


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
