"""Draws the documentation's pictures: `python docs/pictures.py` writes them to docs/pictures/.

With a trace of phones and the run of the experiment that its audit emits, those of the audit:
`python docs/pictures.py phones300.csv RUN`.

They are kept in the repository, so that building the documentation does not run any training.
Backgrounds are transparent and text is a middle grey, for light pages and dark ones.
"""

import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import matplotlib as mpl
import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure

from turnout import Local, Model, World, algorithms, data, participation, simulate, weights
from turnout.audit import figures
from turnout.audit.audit import audit
from turnout.experiments import curves, fairness
from turnout.experiments.results import read_results
from turnout.participation import Participation

FOLDER = Path(__file__).parent / "pictures"
BLUE, ORANGE, GREEN, GREY = "#2a7fc1", "#e08214", "#2c9c6a", "#7d828a"
CLIENTS, ROUNDS = 24, 120
RATES = np.geomspace(0.04, 0.6, CLIENTS)

mpl.rcParams.update(
    {
        "svg.fonttype": "none",  # the reader's own font, and a tenth of the bytes
        "svg.hashsalt": "turnout",  # the same picture gives the same file
        "font.family": "sans-serif",
        "font.size": 10,
        "text.color": GREY,
        "axes.labelcolor": GREY,
        "axes.edgecolor": GREY,
        "xtick.color": GREY,
        "ytick.color": GREY,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "savefig.transparent": True,
        "savefig.bbox": "tight",
        "legend.frameon": False,
    }
)


def save(figure: Figure, name: str) -> None:
    figure.savefig(FOLDER / f"{name}.svg", metadata={"Date": None})


# Who shows up when --------------------------------------------------------------------------------


def trace_of_a_week() -> Participation:
    """Day and night: clients in three time zones, each free for eight hours a day."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "trace.csv"
        lines = ["client,available_from_s,available_until_s"]
        for client in range(CLIENTS):
            begin = 8 * (client % 3) + client / CLIENTS
            lines.append(f"{client},{begin * 3600:.0f},{(begin + 7) * 3600:.0f}")
        path.write_text("\n".join(lines) + "\n")
        return participation.trace(path, round_s=3600, period_s=24 * 3600, whole_round=True)


def at_their_own_pace() -> Participation:
    """Some take ten times as long as others, and all begin again as soon as they have finished."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "log.csv"
        lines = ["client,started_s,took_s"]
        for client in range(CLIENTS):
            took = round(10 * 10 ** (client / CLIENTS))
            lines += [f"{client},{client + k * took},{took}" for k in range(600 // took)]
        path.write_text("\n".join(lines) + "\n")
        return participation.arrivals(path)


PROCESSES: dict[str, Callable[[], Participation]] = {
    "always": lambda: participation.always(CLIENTS),
    "uniform": lambda: participation.uniform(CLIENTS, 5),
    "bernoulli": lambda: participation.bernoulli(RATES),
    "markov": lambda: participation.markov(RATES),
    "cyclic": lambda: participation.cyclic(RATES, period=40),
    "grouped": lambda: participation.grouped(CLIENTS, groups=3, length=15),
    "regularised": lambda: participation.regularised(CLIENTS, period=8),
    "sampled": lambda: participation.sampled(
        participation.grouped(CLIENTS, groups=3, length=15), per_round=2
    ),
    "excluded": lambda: participation.excluded(participation.uniform(CLIENTS, 5), absent=6),
    "lossy": lambda: participation.lossy(participation.bernoulli(0.4, CLIENTS), loss=0.3),
    "sine_drift": lambda: participation.sine_drift(0.4, CLIENTS, amplitude=1.0, period=60),
    "step_drift": lambda: participation.step_drift(RATES, at=60),
    "trace": trace_of_a_week,
    "arrivals": at_their_own_pace,
    "given": lambda: participation.given(
        participation.bernoulli(RATES, seed=3).mask(30), repeat=True
    ),
}


def heat_map(process: Participation) -> Figure:
    figure = Figure(figsize=(6.4, 1.9))
    axes = figure.add_subplot()
    asked, came = process.mask(ROUNDS, cohort=True), process.mask(ROUNDS)
    axes.pcolormesh(
        (asked.astype(int) + came).T,
        cmap=ListedColormap(["#7d828a18", ORANGE, BLUE]),
        vmin=0,
        vmax=2,
        rasterized=True,
    )
    axes.set(xlabel="round", ylabel="client", yticks=[0, CLIENTS // 2, CLIENTS])
    axes.invert_yaxis()
    return figure


# What the pages tell ------------------------------------------------------------------------------


def digits_world() -> World:
    """The world of the ten-minute start."""
    train, test = data.digits()
    partition = data.shards(train.targets, clients=50, classes_each=1, seed=0)
    mix = data.class_mix(partition, train.targets, classes=10)
    rates = participation.class_rates(mix, seed=0)
    return World.build(train, partition, test, participation.bernoulli(rates, seed=0))


def start() -> Figure:
    world, model = digits_world(), Model.of("perceptron", (1, 8, 8), 10)
    figure = Figure(figsize=(6.4, 3))
    axes = figure.add_subplot()
    for label, algorithm, colour in (
        ("FedAvg", algorithms.fedavg(), ORANGE),
        ("FedAU", algorithms.fedau(), BLUE),
    ):
        run = simulate(algorithm, world, model, rounds=500)
        axes.plot(*run.curve("test_accuracy"), color=colour, label=label)
    axes.legend(loc="lower right", reverse=True)
    axes.set(xlabel="round", ylabel="test accuracy", ylim=(0, 1))
    return figure


def fedau_weights() -> Figure:
    rates, rounds = np.array([0.05, 0.2, 0.6]), 2000
    omega = weights(
        algorithms.fedau(cutoff=50), participation.bernoulli(rates, seed=1).mask(rounds)
    )
    figure = Figure(figsize=(6.4, 2.8))
    axes = figure.add_subplot()
    for n, colour in enumerate((BLUE, ORANGE, GREEN)):
        axes.plot(omega[:, n], color=colour)
        axes.axhline(1 / rates[n], color=colour, linestyle=":", linewidth=1)
        axes.annotate(
            f"p = {rates[n]:g}",
            (rounds, 1 / rates[n]),
            xytext=(4, 0),
            textcoords="offset points",
            color=colour,
            va="center",
        )
    axes.set(xlabel="round", ylabel="weight ω (dotted: 1/p)", yscale="log", xlim=(0, rounds))
    axes.set_yticks([1, 2, 5, 10, 20], ["1", "2", "5", "10", "20"], minor=False)
    axes.minorticks_off()
    return figure


def amplified_paths() -> Figure:
    """The motivating example of Generalized FedAvg: three clients, one a round in turn."""
    centres = np.array([[0.0, 0.0], [2.0, 0.0], [1.0, 1.8]])
    problem = data.quadratics(centres)
    world = World.build(
        problem.pool, problem.partition, problem.pool, participation.regularised(3, period=3)
    )
    model = Model.of("point", (2,), options={"start": (0.2, 2.4)})
    figure = Figure(figsize=(6.4, 2.6))
    for place, (lr, factor) in enumerate(((0.5, 1.0), (0.05, 1.0), (0.05, 10.0)), start=1):
        axes = figure.add_subplot(1, 3, place)
        path = [np.array((0.2, 2.4))]
        for rounds in range(1, 16):
            local = Local(lr=lr, steps=1, batch_size=None)
            algorithm = algorithms.amplified(3, factor, inner=algorithms.fedavg(local=local))
            run = simulate(algorithm, world, model, rounds, dtype=torch.float64)
            path.append(run.x.numpy().copy())
        axes.plot(*np.array(path).T, color=BLUE, marker=".", linewidth=1)
        axes.plot(*centres.T, "^", color=GREY)
        axes.plot(*centres.mean(0), "*", color=ORANGE, markersize=12)
        axes.set(title=f"γ = {lr:g}, η = {factor:g}", xticks=[], yticks=[])
        axes.set(xlim=(-0.3, 2.3), ylim=(-0.5, 2.7))
    return figure


def one_round() -> Figure:
    """The five steps of a round, and who takes them."""
    figure = Figure(figsize=(7.2, 3.1))
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(0, 100), ylim=(0, 44))
    axes.axis("off")
    _lane(axes, 30, "server")
    _lane(axes, 4, "clients")
    boxes = [
        (14, 31, "announce", "x, ω_i, means"),
        (35, 5, "client_step", "Δ_i = K local steps\nupload ω_i·(Δ_i − β·h_i)"),
        (58, 31, "absorb", "sum what arrived,\nnote who delivered"),
        (80, 31, "close", "divide, remember,\ntransform, move x"),
    ]
    for x, y, title, text in boxes:
        axes.text(x + 1, y + 8, title, color=BLUE, weight="bold", family="monospace")
        axes.text(x + 1, y + 6.3, text, va="top", fontsize=9)
    for tail, head in (
        ((24, 30), (36, 16)),
        ((53, 16), (61, 30)),
        ((71, 39.5), (79, 39.5)),
    ):
        axes.annotate("", head, tail, arrowprops={"arrowstyle": "->", "color": GREY})
    axes.text(24, 22, "cohort", ha="right", fontsize=9, color=ORANGE)
    axes.text(62, 22, "delivered", ha="left", fontsize=9, color=ORANGE)
    return figure


def _lane(axes: Axes, y: float, name: str) -> None:
    axes.axhspan(y, y + 12, xmin=0.12, color=GREY, alpha=0.1, linewidth=0)
    axes.text(1, y + 6, name, va="center")


# The audit of a trace of phones -------------------------------------------------------------------


def audited(log: Path, run: Path) -> dict[str, Figure | None]:
    found = audit(log)
    results = read_results(run)
    pictures = {
        "audit_attendance": figures.attendance(found),
        "audit_rates": figures.rates(found),
        "audit_spectrum": figures.spectrum(found),
        "audit_cycle": figures.cycle(found),
        "audit_weights": figures.weights(found),
        "audit_cutoffs": figures.cutoffs(found),
        "audit_accuracy": curves.accuracy(results),
        "audit_tenths": fairness.deciles(results),
    }
    for name, figure in pictures.items():
        if figure is not None:
            figure.set_size_inches(6.4, 3.4 if name == "audit_attendance" else 2.8)
            for axes in figure.axes:
                axes.set_title("")
    if pictures["audit_accuracy"] is not None:
        pictures["audit_accuracy"].axes[0].set_ylim(70, 100)
    return pictures


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    if len(sys.argv) > 2:
        for name, picture in audited(Path(sys.argv[1]), Path(sys.argv[2])).items():
            if picture is not None:
                save(picture, name)
        return
    for name, make in PROCESSES.items():
        save(heat_map(make()), name)
    for drawing in (start, fedau_weights, amplified_paths, one_round):
        save(drawing(), drawing.__name__)


if __name__ == "__main__":
    main()
