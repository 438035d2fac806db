"""Items whose cells are trainings: tables, and the figures drawn from the same results."""

from collections.abc import Callable, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from turnout.experiments.style import figure, look, settings
from turnout.reproduce.evidence import as_cells
from turnout.reproduce.item import METHOD, Item
from turnout.reproduce.judge import Entry, counts
from turnout.reproduce.origin import origin
from turnout.reproduce.report import Report
from turnout.reproduce.request import Request
from turnout.reproduce.run import Played
from turnout.reproduce.table import Text, as_rows, as_text, covered, entries, of_entry, tail_of
from turnout.reproduce.values import ALWAYS, curve

Draw = Callable[[Item, Sequence[Entry], Sequence[Played]], Figure]


def trained(request: Request, draw: Draw | None = None) -> Report:
    """Play the cells and lay them out as the paper does."""
    item, played = request.item, request.play()
    found = entries(item, request.scale, played)
    readings, said = _readings(item, request.scale, played)
    with settings():
        drawn = None if draw is None else draw(item, found, played)
    return Report(
        request,
        as_text(item, found),
        as_rows(item, request.scale, played, found),
        found,
        drawn,
        [*said, *_gains(item, found), *_notes(played)],
        origin(played),
        readings,
        as_cells(played, tail_of(item, request.scale)),
    )


def _readings(item: Item, scale: str, played: Sequence[Played]) -> tuple[Text, list[str]]:
    """Every entry read in all three ways, where the paper does not say how it reads its curves."""
    if item.about.value != "best" or item.about.values:
        return [], []
    ways = [
        entries(item._replace(about=item.about.model_copy(update={"value": way})), scale, played)
        for way in ALWAYS
    ]
    names = ("last round", "best round", f"mean of the last {tail_of(item, scale)}")
    columns = list(dict.fromkeys(entry.column for entry in ways[0]))
    rows: dict[str, list[str]] = {}
    for each in zip(*ways, strict=True):
        text = " · ".join(f"{entry.ours.mean:.2f}" for entry in each)
        rows.setdefault(each[0].row, []).append(text + _coverage(of_entry(item, played, each[0])))
    shown = [[" · ".join(names), *columns], *([row, *texts] for row, texts in rows.items())]
    if item.scales[scale].judge != "values":
        return shown, []
    matches = ", ".join(
        f"{counts(way)['matches']} by the {name}" for way, name in zip(ways, names, strict=True)
    )
    return shown, [f"Of {len(ways[0])} cells match: {matches}."]


def _coverage(here: Sequence[Played]) -> str:
    """Said where nobody who came holds some class: no accuracy can be had there without the server."""
    every, some = len(here[0].record["classes"]), covered(here)
    return "" if some == every else f" ({some:.1f} of {every} classes)"


def _gains(item: Item, found: Sequence[Entry]) -> list[str]:
    """Of the gains that the paper prints above 5 points: how many are there, and of what size."""
    large = [
        (entry.ours.mean, entry.paper.value)
        for entry in found
        if entry.paper is not None and not entry.paper.below and entry.paper.value > 5
    ]
    if item.about.gain_over is None or not large:
        return []
    signs = sum(ours > 0 for ours, _ in large)
    sizes = sum(abs(ours - paper) <= paper / 3 for ours, paper in large)
    return [
        f"Of the paper's {len(large)} gains above 5 points {signs} have the paper's sign, and {sizes} "
        "are within a third of its size."
    ]


def _notes(played: Sequence[Played]) -> list[str]:
    failed = sorted({name(p) for p in played if p.record["status"] == "diverged"})
    return (
        [f"Diverged with some seed, and counted as chance: {', '.join(failed)}."] if failed else []
    )


def name(played: Played) -> str:
    return " · ".join(played.point.values())


def curves(item: Item, found: Sequence[Entry], played: Sequence[Played]) -> Figure:
    """Test accuracy over rounds, a panel for each row of the table and a line for each column."""
    down = [axis for axis in item.about.rows if axis != METHOD] or []
    panels = list(dict.fromkeys(tuple(p.point[axis] for axis in down) for p in played))
    drawn = figure(4.6 * len(panels) + 2, 4.2)
    all_axes: list[Axes] = list(drawn.subplots(1, len(panels), sharey=True, squeeze=False)[0])
    for axes, panel in zip(all_axes, panels, strict=True):
        here = [p for p in played if tuple(p.point[axis] for axis in down) == panel]
        rest = [axis for axis in here[0].point if axis not in down and _varies(axis, here)]
        lines = list(dict.fromkeys(tuple(p.point[axis] for axis in rest) for p in here))
        for place, labels in enumerate(lines):
            ours = [p for p in here if tuple(p.point[axis] for axis in rest) == labels]
            found_curves = [curve(p.record, "test_accuracy") for p in ours]
            shortest = min(len(values) for _, values in found_curves)
            rounds = found_curves[0][0][:shortest]
            values = 100 * np.array([values[:shortest] for _, values in found_curves])
            style = look(place)
            axes.plot(
                rounds, values.mean(0), label=" · ".join(labels), color=style.colour,
                linestyle=style.dashes, linewidth=1.6,
            )  # fmt: skip
            if len(values) > 1:
                low, high = values.mean(0) - values.std(0), values.mean(0) + values.std(0)
                axes.fill_between(rounds, low, high, color=style.colour, alpha=0.13, linewidth=0)
        axes.set_title(" · ".join(panel) or item.about.title)
        axes.set_xlabel("communication rounds")
    all_axes[0].set_ylabel("test accuracy (%)")
    all_axes[-1].legend(loc="lower right")
    return drawn


def _varies(axis: str, played: Sequence[Played]) -> bool:
    return len({p.point[axis] for p in played}) > 1


def lines(item: Item, found: Sequence[Entry], played: Sequence[Played]) -> Figure:
    """The table as lines: across its columns, one for each row."""
    drawn = figure(7.2, 4.4)
    axes = drawn.subplots()
    rows = list(dict.fromkeys(entry.row for entry in found))
    columns = list(dict.fromkeys(entry.column for entry in found))
    for place, row in enumerate(rows):
        here = [entry for entry in found if entry.row == row]
        at = [columns.index(entry.column) for entry in here]
        style = look(place)
        axes.errorbar(
            at, [e.ours.mean for e in here], yerr=[e.ours.std or 0 for e in here], label=row,
            color=style.colour, linestyle=style.dashes, marker=style.marker, capsize=2.5,
        )  # fmt: skip
    axes.set_xticks(range(len(columns)), [c.rpartition("=")[2] for c in columns])
    axes.set_xlabel(item.about.x or " · ".join(item.about.columns))
    axes.set_ylabel(item.about.unit)
    axes.set_title(item.about.title)
    axes.legend()
    return drawn


def spread(item: Item, found: Sequence[Entry], played: Sequence[Played]) -> Figure:
    """How loss and accuracies are distributed over clients, as shares of them below a value."""
    drawn = figure(10.5, 3.8)
    panels: list[Axes] = list(drawn.subplots(1, 3, sharey=True))
    kinds = (
        ("loss", 1, "training loss of a client"),
        ("accuracy", 100, "training accuracy of a client (%)"),
        ("test_accuracy", 100, "test accuracy of a client (%)"),
    )
    methods = list(dict.fromkeys(p.point[METHOD] for p in played))
    for axes, (column, scale, label) in zip(panels, kinds, strict=True):
        for place, method in enumerate(methods):
            clients = [c for p in played if p.point[METHOD] == method for c in p.record["clients"]]
            values = scale * np.sort(np.array([client[column] for client in clients]))
            share = np.arange(1, len(values) + 1) / len(values)
            style = look(place)
            axes.plot(values, share, color=style.colour, linestyle=style.dashes, label=method)
        axes.set_xlabel(label)
    panels[0].set_ylabel("share of clients at or below")
    panels[0].legend()
    return drawn
