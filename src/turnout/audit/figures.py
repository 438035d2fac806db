"""The audit as figures: who came when and how often, what repeats, and what that weighs."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from turnout.audit.audit import Audit
from turnout.audit.cutoff import implicit
from turnout.audit.gaps import gaps_of
from turnout.experiments import presence
from turnout.experiments.frames import log_ticks, thinned
from turnout.experiments.style import figure, look

Floats = NDArray[np.float64]

_WIDTH, _HEIGHT = 5.0, 3.4
_GREY = "#999999"
_BARS = 12
_DAY = 86400.0
_STEEP = 10
"""Ratios beyond this are drawn on a logarithmic axis."""
_CYCLES = 3
"""What comes round less often in the log is not called a cycle."""


def attendance(found: Audit) -> Figure:
    """Who came when?"""
    history = found.history
    drawn = presence.attendance(history.round, history.client, history.rounds, history.clients)
    drawn.set_size_inches(_WIDTH, _HEIGHT)
    _clock(found, drawn.axes[0])
    return drawn


def over_time(found: Audit) -> Figure:
    """How many came in each round?"""
    history = found.history
    drawn = figure(_WIDTH, _HEIGHT)
    axes = drawn.subplots()
    came = history.per_round.astype(np.float64)
    some = np.linspace(0, history.rounds, min(history.rounds, 300) + 1).round().astype(int)
    mean = np.add.reduceat(came, some[:-1]) / np.diff(some)
    axes.plot((some[:-1] + some[1:]) / 2, mean, color=look(0).colour, linewidth=1.2)
    axes.axhline(came.mean(), color=_GREY, linewidth=1, linestyle="--")
    axes.annotate(
        f"mean {came.mean():.3g}", (1, came.mean()), xycoords=("axes fraction", "data"),
        xytext=(0, 3), textcoords="offset points", ha="right", color=_GREY,
    )  # fmt: skip
    for each in found.fit.changes:
        if each.kind == "step":
            axes.axvline(each.round, color=look(1).colour, linewidth=1.2)
    axes.set_ylim(bottom=0)
    axes.set_ylabel("clients that came")
    axes.margins(x=0)
    _clock(found, axes)
    return drawn


def cycle(found: Audit) -> Figure | None:
    """How many come at each place of the cycle?"""
    period = found.fit.period
    if period is None:
        return None
    history = found.history
    bins = int(min(48, np.ceil(period.rounds)))
    place = np.arange(history.rounds) % period.rounds * bins / period.rounds
    which = np.minimum(place.astype(int), bins - 1)
    number = np.maximum(np.bincount(which, minlength=bins), 1)
    came = history.per_round.astype(np.float64)
    mean = np.bincount(which, came, minlength=bins) / number
    spread = np.sqrt(np.bincount(which, (came - mean[which]) ** 2, minlength=bins) / number)
    drawn = figure(_WIDTH, _HEIGHT)
    axes = drawn.subplots()
    scale, unit = 1.0, "round of the cycle"
    if history.round_s is not None and found.fit.name == "daily":
        scale, unit = history.round_s / 3600, "hours after the log's zero, modulo the period"
    x = (np.arange(bins) + 0.5) * period.rounds / bins * scale
    axes.fill_between(
        x,
        np.maximum(mean - spread, 0),
        mean + spread,
        color=look(0).colour,
        alpha=0.15,
        linewidth=0,
    )
    axes.plot(x, mean, color=look(0).colour, linewidth=1.7)
    axes.set_ylim(bottom=0)
    axes.set_xlabel(unit)
    axes.set_ylabel("clients that came")
    axes.margins(x=0.01)
    return drawn


def spectrum(found: Audit) -> Figure | None:
    """At which periods does presence vary more than spells explain?"""
    searched = found.fit.spectrum
    if searched is None or searched.rounds < 16:
        return None
    ratio = searched.ratio[_CYCLES:]
    length = searched.rounds / np.arange(_CYCLES, len(ratio) + _CYCLES)
    # On a logarithmic axis most frequencies fall together: of each group the largest is drawn.
    ends = np.geomspace(_CYCLES, len(ratio) + _CYCLES, 300).round().astype(int)
    edges = np.unique(ends) - _CYCLES
    top = np.maximum.reduceat(ratio, edges[:-1])
    drawn = figure(_WIDTH, _HEIGHT)
    axes = drawn.subplots()
    axes.axhline(1, color=_GREY, linewidth=1, linestyle="--")
    axes.plot(length[edges[:-1]], top, color=look(0).colour, linewidth=1.2)
    period = found.fit.period
    if period is not None:
        axes.axvspan(period.low, period.high, color=look(1).colour, alpha=0.25, linewidth=0)
        axes.axvline(period.rounds, color=look(1).colour, linewidth=1.2)
        axes.annotate(
            f"{period.rounds:.4g} rounds", (period.rounds, 0.98), color=look(1).colour, va="top",
            xycoords=("data", "axes fraction"), xytext=(5, 0), textcoords="offset points",
        )  # fmt: skip
    axes.set_xscale("log")
    if top.max() > _STEEP:
        axes.set_yscale("log")
        log_ticks(axes.yaxis)
    else:
        axes.set_ylim(bottom=0)
    _plain(axes)
    axes.set_xlabel("period (rounds)")
    axes.set_ylabel("variation ÷ what spells explain")
    return drawn


def rates(found: Audit) -> Figure:
    """How often does each client come, and how sure is that?"""
    known = found.rates
    order = np.argsort(known.rate, kind="stable")[thinned(len(known.rate))]
    x = np.linspace(0, 100, len(order)) if len(order) > 1 else np.zeros(1)
    drawn = figure(_WIDTH, _HEIGHT)
    axes = drawn.subplots()
    blue = look(0).colour
    axes.fill_between(
        x, 100 * known.low[order], 100 * known.high[order], step="mid", color=blue, alpha=0.18,
        linewidth=0, label=f"{100 * known.confidence:.0f} % intervals",
    )  # fmt: skip
    axes.step(x, 100 * known.rate[order], where="mid", color=blue, linewidth=1.7, label="rate")
    mean = 100 * found.federation.mean_rate
    axes.axhline(mean, color=_GREY, linewidth=1, linestyle="--", label="mean")
    axes.set_xlabel("clients, from rare to frequent (%)")
    axes.set_ylabel("share of rounds (%)")
    axes.set_ylim(bottom=0)
    axes.margins(x=0.01)
    axes.legend(loc="upper left")
    return drawn


def gaps(found: Audit) -> Figure | None:
    """How long do clients stay away?"""
    every, _ = gaps_of(found.history)
    if not len(every):
        return None
    lengths, number = np.unique(every, return_counts=True)
    longer = 100 * (1 - (np.cumsum(number) - number) / number.sum())
    some = thinned(len(lengths))
    drawn = figure(_WIDTH, _HEIGHT)
    axes = drawn.subplots()
    axes.step(lengths[some], longer[some], where="pre", color=look(0).colour, linewidth=1.7)
    best = found.advice.cutoff
    if best is not None:
        K = best.setting.value
        axes.axvline(K, color=look(1).colour, linewidth=1.2)
        axes.annotate(
            f" K = {K:g}", (K, 0.97), xycoords=("data", "axes fraction"), va="top",
            color=look(1).colour,
        )  # fmt: skip
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.margins(x=0.03)
    axes.set_xlim(left=0.9)
    _plain(axes)
    log_ticks(axes.yaxis)
    axes.set_xlabel("rounds to the next participation")
    axes.set_ylabel("gaps at least so long (%)")
    return drawn


def weights(found: Audit) -> Figure:
    """What does each client count for, against what it should?"""
    history, objective = found.history, found.impact.objective
    order = np.argsort(history.counts, kind="stable")
    some = thinned(len(order))
    x = np.linspace(0, 100, len(some)) if len(some) > 1 else np.zeros(1)
    drawn = figure(_WIDTH, _HEIGHT)
    axes = drawn.subplots()
    lines = [("plain averaging", objective.ratio)]
    best = found.advice.cutoff
    if best is not None:
        shares = objective.intended * implicit(history, int(best.setting.value))
        fedau = np.divide(
            shares / shares.sum(), objective.intended,
            out=np.ones(len(shares)), where=objective.intended > 0,
        )  # fmt: skip
        lines.append((f"FedAU, K = {best.setting.value:g}", fedau))
    for place, (label, ratio) in enumerate(lines):
        style = look(place)
        axes.plot(
            x, ratio[order][some], style.marker, color=style.colour, markersize=3, alpha=0.7,
            markeredgewidth=0, label=label,
        )  # fmt: skip
    axes.axhline(1, color=_GREY, linewidth=1, linestyle="--", label="as intended")
    axes.set_yscale("symlog", linthresh=0.1, linscale=0.3)
    axes.set_ylim(bottom=0)
    axes.set_yticks(ticks := [t for t in _TICKS if t <= 1.2 * axes.get_ylim()[1]], map(_g, ticks))
    axes.minorticks_off()
    axes.set_xlabel("clients, from rare to frequent (%)")
    axes.set_ylabel("weight ÷ what was intended")
    axes.margins(x=0.02)
    axes.legend(loc="lower right")
    return drawn


_TICKS = [0, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000]


def cutoffs(found: Audit) -> Figure | None:
    """How much does FedAU leave in the wrong place with each cutoff?"""
    best = found.advice.cutoff
    if best is None or len(best.misplaced) < 2:
        return None
    drawn = figure(_WIDTH, _HEIGHT)
    axes = drawn.subplots()
    K, wrong = np.array(list(best.misplaced)), 100 * np.array(list(best.misplaced.values()))
    axes.plot(K, wrong, color=look(1).colour, marker=look(1).marker, markersize=3, linewidth=1.4)
    axes.plot(
        [best.setting.value], [wrong.min()], look(1).marker, color=look(1).colour, markersize=8
    )
    axes.annotate(
        f"K = {best.setting.value:g}", (best.setting.value, wrong.min()), xytext=(0, 8),
        textcoords="offset points", ha="center",
    )  # fmt: skip
    axes.set_xscale("log")
    axes.set_ylim(bottom=0)
    _plain(axes)
    axes.set_xlabel("cutoff K (rounds)")
    axes.set_ylabel("weight in the wrong place (%)")
    return drawn


def classes(found: Audit) -> Figure | None:
    """Which classes are heard less than they should be?"""
    known = found.impact.classes
    if known is None:
        return None
    order = np.argsort(known.ratio, kind="stable")[:_BARS]
    place = np.arange(len(order))
    drawn = figure(_WIDTH, 1.1 + 0.34 * len(order))
    axes = drawn.subplots()
    axes.barh(place - 0.19, 100 * known.intended[order], 0.36, color=_GREY, label="intended")
    axes.barh(
        place + 0.19,
        100 * known.implicit[order],
        0.36,
        color=look(0).colour,
        label="plain averaging",
    )
    axes.set_yticks(place, [known.names[k] for k in order.tolist()])
    axes.invert_yaxis()
    axes.grid(visible=False, axis="y")
    axes.set_xlabel("weight in the objective (%)")
    drawn.legend(loc="outside upper left", ncols=2)
    return drawn


def _g(value: float) -> str:
    return f"{value:g}"


def _plain(axes: Axes) -> None:
    """Few, plain numbers along a logarithmic axis of rounds."""
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}" if value >= 1 else "")
    axes.xaxis.set_minor_formatter(lambda value, _: "")


def _clock(found: Audit, axes: Axes) -> None:
    """Rounds along the axis, and days where they have a length and the log several days."""
    history = found.history
    axes.set_xlabel("round")
    if history.round_s is None:
        return
    each = _DAY / history.round_s
    days = history.rounds / each
    if not 2 <= days <= 60:
        return
    step = max(1, round(days / 8))
    ticks = np.arange(0, days, step)
    axes.set_xticks(ticks * each, [_g(tick) for tick in ticks])
    axes.set_xlabel("day")
