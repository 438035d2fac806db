"""Whom a method serves: clients that come often, rarely or never, and classes."""

import numpy as np
from matplotlib.figure import Figure

from turnout.experiments.frames import legend, title
from turnout.experiments.results import Result, Results
from turnout.experiments.style import figure, look, series


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
                    gid=series(place),
                    label=name if name not in axes.get_legend_handles_labels()[1] else None,
                )  # fmt: skip
    axes.set_yticks(range(len(labels)), labels)
    axes.invert_yaxis()
    axes.grid(axis="y", visible=False)
    axes.set_xlim(-3, 103)
    axes.set_xlabel("accuracy on clients' own data (%)")
    axes.set_title(title(results, "Who is served"))
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


def deciles(results: Results) -> Figure | None:
    """How does each tenth of the clients fare, from those that came least to those that came most?"""
    drawn = figure()
    axes = drawn.subplots()
    tenths = np.arange(1, 11)
    for place, label in enumerate(results.labels()):
        last = [
            [m["decile_accuracy"] for m in cell.metrics if "decile_accuracy" in m][-1:]
            for cell in results.of(label)
        ]
        table = 100 * np.array([tenth for each in last for tenth in each if len(tenth) == 10])
        if not len(table):
            continue
        style, middle = look(place), table.mean(0)
        axes.plot(
            tenths, middle, label=label, color=style.colour, linestyle=style.dashes,
            marker=style.marker, markersize=5, linewidth=1.5, gid=series(place),
        )  # fmt: skip
        if len(table) > 1:
            std = table.std(0, ddof=1)
            low, high = np.maximum(middle - std, 0), np.minimum(middle + std, 100)
            axes.fill_between(
                tenths, low, high, color=style.colour, alpha=0.1, linewidth=0,
                gid=series(place),
            )  # fmt: skip
    if not axes.lines:
        return None
    axes.set_xticks(tenths)
    axes.set_ylim(-3, 103)
    axes.set_xlabel("tenths of the clients, from those that delivered least to most")
    axes.set_ylabel("accuracy on the clients' own data (%)")
    axes.set_title(title(results, "Accuracy by participation"))
    legend(drawn, axes)
    return drawn


def spread(results: Results) -> Figure | None:
    """How far apart are clients under each method: 5 to 95 % of them, 25 to 75 %, and the median?"""
    labels = results.labels()
    pooled = {
        place: 100
        * np.array([row["accuracy"] for cell in results.of(label) for row in cell.clients])
        for place, label in enumerate(labels)
        if all(row["accuracy"] is not None for cell in results.of(label) for row in cell.clients)
    }
    pooled = {place: values for place, values in pooled.items() if len(values)}
    if not pooled:
        return None
    drawn = figure(8.0, 1.4 + 0.42 * len(labels))
    axes = drawn.subplots()
    for place, values in pooled.items():
        style, gid = look(place), series(place)
        low, lower, middle, upper, high = np.percentile(values, [5, 25, 50, 75, 95])
        axes.hlines(place, low, high, color=style.colour, linewidth=1.4, gid=gid)
        axes.hlines(place, lower, upper, color=style.colour, linewidth=7, alpha=0.45, gid=gid)
        axes.plot(
            middle, place, color=style.colour, marker=style.marker, markersize=7,
            linestyle="none", gid=gid,
        )  # fmt: skip
    axes.set_yticks(range(len(labels)), labels)
    axes.set_ylim(len(labels) - 0.5, -0.5)
    axes.grid(axis="y", visible=False)
    axes.set_xlim(-3, 103)
    axes.set_xlabel("accuracy on a client's own data (%)")
    axes.set_title(title(results, "Spread over clients", spread=False))
    return drawn


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
    names = [f"{first.classes[c]['class']:.0f}\n{100 * seen[c]:.0f}" for c in order]
    axes.set_xticks(range(len(order)), names)
    axes.set_xlabel("class, and how much of its training data ever took part (%)")
    axes.grid(visible=False)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    axes.set_title(f"Test accuracy of each class, after the last round (seed {first.seed})")
    drawn.colorbar(image, ax=axes, label="test accuracy (%)", shrink=0.9)
    return drawn
