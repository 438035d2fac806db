"""FedAU's weights of a frequent, a middling and rare clients over the rounds, against 1/p."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from turnout import round as protocol
from turnout.experiments.style import figure, look, settings
from turnout.reproduce.grid import Cell, cells
from turnout.reproduce.item import METHOD
from turnout.reproduce.judge import BY_SPREAD, MARKS, Entry, Printed, judged
from turnout.reproduce.origin import origin
from turnout.reproduce.play import simulation_of
from turnout.reproduce.report import Report
from turnout.reproduce.request import Request
from turnout.reproduce.values import Measured
from turnout.theory.intervals import interval_mean, interval_variance

Floats = NDArray[np.float64]
ERRORS = 3.0
"""Standard errors of a mean of intervals that it may be away from what it estimates."""

_POINTS = 800
"""A line has about so many, as more cannot be seen."""


def weights(request: Request) -> Report:
    """Weights along each participation pattern; nothing is trained."""
    item, settings_of = request.item, request.item.settings
    rounds = int(settings_of.get(request.scale, {}).get("rounds", settings_of["rounds"]))
    rows: list[dict[str, Any]] = []
    entries: list[Entry] = []
    drawn: dict[tuple[str, str], list[tuple[float, Floats]]] = {}
    for cell in cells(item, request.scale, request.seeds):
        simulation = simulation_of(cell.config)
        participation = simulation.world.participation
        assert participation.rates is not None  # the patterns of these items have them
        p = participation.rates
        table = protocol.weights(simulation.algorithm, participation.mask(rounds))
        ranked = np.argsort(p, kind="stable")
        cutoff = cell.config.algorithm[0].options["cutoff"]
        for client in (ranked[-1], ranked[len(p) // 2], ranked[1], ranked[0]):
            rate, omega = float(p[client]), table[:, client]
            late = float(omega[rounds // 2 :].mean())
            expected = _expected(cell, rate, cutoff, rounds)
            ours = Measured(late, None, 1)
            label = f"client {client}, p = {rate:.3f}, 1/p = {1 / rate:.1f}"
            entries.append(Entry(label, " · ".join(cell.point.values()), ours, expected))
            panel = cell.point["participation"], cell.point[METHOD]
            drawn.setdefault(panel, []).append((rate, omega))
            rows.append(
                {**cell.point, "seed": cell.seed, "client": int(client), "p": rate, "1/p": 1 / rate}
                | {"weight": late, "expected": None if expected is None else expected.value}
            )
    # Whatever matches does so within its own interval, so that needs no mention.
    judgement = judged(entries, signed=False, values=True, points=0.0)
    found = [e._replace(why="" if e.why == BY_SPREAD else e.why) for e in judgement]
    for row, entry in zip(rows, found, strict=True):
        row["verdict"] = entry.verdict
    shown = [["", "", item.about.unit, "expected", ""]]
    for entry in found:
        expected = entry.paper
        text = "" if expected is None else f"{expected.value:.2f} ±{expected.std:.2f}"
        shown.append([entry.column, entry.row, f"{entry.ours}", text, MARKS[entry.verdict]])
    notes = (
        f"Expected: the mean interval of B.6.2 under Bernoulli participation, ± {ERRORS:g} standard "
        "errors of the intervals seen.",
    )
    return Report(request, shown, rows, found, _figure(drawn), notes, origin())


def _expected(cell: Cell, p: float, cutoff: int | None, rounds: int) -> Printed | None:
    """What ω estimates, where intervals are independent: the mean of one that is cut at K."""
    if cell.config.participation.process != "bernoulli":
        return None
    limit = rounds if cutoff is None else cutoff
    mean = float(interval_mean(p, limit).value)
    # About half of the rounds have gone by when the averaging begins.
    seen = max(rounds / 2 / mean, 1.0)
    return Printed(mean, ERRORS * float(np.sqrt(interval_variance(p, limit).value / seen)))


def _figure(drawn: dict[tuple[str, str], list[tuple[float, Floats]]]) -> Figure:
    with settings():
        patterns = list(dict.fromkeys(pattern for pattern, _ in drawn))
        methods = list(dict.fromkeys(method for _, method in drawn))
        made = figure(4.2 * len(patterns), 3.2 * len(methods))
        grid = made.subplots(len(methods), len(patterns), sharex=True, squeeze=False)
        for (pattern, method), lines in drawn.items():
            axes: Axes = grid[methods.index(method)][patterns.index(pattern)]
            for place, (p, omega) in enumerate(lines):
                style = look(place)
                at = np.arange(0, len(omega), max(1, len(omega) // _POINTS))
                label = f"p = {p:.3f}"
                axes.plot(at, omega[at], color=style.colour, linewidth=1.2, label=label)
                axes.axhline(1 / p, color=style.colour, linestyle=":", linewidth=1)
            axes.set_yscale("log")
            axes.set_title(f"{method}, {pattern}")
            if grid[-1][patterns.index(pattern)] is axes:
                axes.set_xlabel("round")
            if grid[methods.index(method)][0] is axes:
                axes.set_ylabel("weight ω (dotted: 1/p)")
        made.axes[0].legend()
        return made
