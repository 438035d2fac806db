"""Figures of runs that are in memory: in a notebook, the last line of a cell shows one.

    runs = {"FedAvg": simulate(algorithms.fedavg(), …), "FedAU": simulate(algorithms.fedau(), …)}
    plots.accuracy(runs)

They are those of a run directory's report, and are figures of matplotlib: `.savefig("picture.svg")`.
"""

from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from turnout.errors import InputError
from turnout.experiments import curves, fairness, presence, weighing
from turnout.experiments.read import configure
from turnout.experiments.results import Result, Results
from turnout.experiments.style import settings
from turnout.participation.process import Participation
from turnout.runs import Run

__all__ = ["accuracy", "deciles", "loss", "participation", "served", "spread", "weights"]

Runs = Mapping[str, Run]
"""Runs by the names that the legend gives them."""


def accuracy(runs: Runs) -> Figure:
    """Test accuracy over the rounds; the loss, where there are no classes."""
    return _drawn(curves.accuracy, runs, "test accuracy")


def loss(runs: Runs) -> Figure:
    """Test loss over the rounds."""
    return _drawn(curves.losses, runs, "test loss")


def weights(runs: Runs) -> Figure:
    """What clients counted for over the whole run, against how often they come."""
    return _drawn(weighing.weights, runs, "weights that are the whole story")


def deciles(runs: Runs) -> Figure:
    """Accuracy of each tenth of the clients, from those that came least to those that came most."""
    return _drawn(fairness.deciles, runs, "accuracy by tenths of ten clients or more")


def spread(runs: Runs) -> Figure:
    """How far apart clients' accuracies are."""
    return _drawn(fairness.spread, runs, "accuracies of clients")


def served(runs: Runs) -> Figure:
    """Accuracy for clients that came, and for those that never did."""
    return _drawn(fairness.served, runs, "accuracies of clients")


def participation(process: Participation, rounds: int = 200) -> Figure:
    """Who delivers when: a row a client, from frequent to rare."""
    client, when = [], []
    for t, came in enumerate(process.rounds(rounds)):
        client.append(came.delivered)
        when.append(np.full(len(came.delivered), t))
    with settings():
        drawn = presence.attendance(
            np.concatenate(when), np.concatenate(client), rounds, process.clients, process.rates
        )
        drawn.axes[0].set_title(f"Who delivers when ({process.name})")
        return drawn


def _drawn(make: Callable[[Results], Figure | None], runs: Runs, what: str) -> Figure:
    if not runs:
        raise InputError("runs are empty; there must be one to draw at least")
    with settings():
        drawn = make(_results(runs))
    if drawn is None:
        raise InputError(f"runs have no {what}; there must be some to draw")
    return drawn


def _results(runs: Runs) -> Results:
    """The runs as if they had been read from a directory."""
    algorithms = [{"name": run.algorithm.name, "label": label} for label, run in runs.items()]
    cells = [_cell(label, run) for label, run in runs.items()]
    played = max(cell.round for cell in cells)
    config = configure({"run": {"name": "", "rounds": max(played, 1)}, "algorithm": algorithms})
    return Results(Path(), config, cells)


def _cell(label: str, run: Run) -> Result:
    return Result(
        label=label,
        seed=0,
        status="done" if run.diverged is None else "diverged",
        round=run.history[-1]["round"] if run.history else 0,
        memory=run.algorithm.memory is not None,
        metrics=run.history,
        seconds=run.seconds,
        clients=list(run.clients),
        classes=[],
        folder=Path(),
    )
