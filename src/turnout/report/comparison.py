"""The report of run directories: which method is better, who took part, who is served, at what cost."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from matplotlib.figure import Figure

from turnout.errors import InputError
from turnout.experiments import curves, fairness, presence, weighing
from turnout.experiments.directory import CONFIG, REPORT
from turnout.experiments.frames import METHODS
from turnout.experiments.merge import apart, merge, names
from turnout.experiments.results import Results, read_results
from turnout.experiments.style import settings
from turnout.experiments.summary import Summary, ahead, summarise
from turnout.experiments.table import label, with_leaders
from turnout.report.page import (
    Best,
    Bullets,
    Code,
    Fold,
    Page,
    Part,
    Picture,
    Section,
    Table,
    Text,
    keep,
)
from turnout.wording import counted


class Figured(NamedTuple):
    """A figure with what there is to see in it."""

    make: Callable[[Results], Figure | None]
    caption: str
    size: tuple[float, float] = (5.0, 3.4)
    read: str = ""


OVER_ROUNDS = (
    Figured(
        curves.accuracy,
        "How well the model does on test data after so many rounds. Line: mean over seeds; band: one "
        "standard deviation to each side.",
        read="Round",
    ),
    Figured(curves.loss, "Test loss over the rounds, on a logarithmic scale.", read="Round"),
)
PRESENT = (
    Figured(
        presence.participation,
        "Who delivered in which round: a row a client, from those that should come most to those that "
        "should come least. Many clients or rounds are thinned to the share of rounds delivered.",
    ),
    Figured(
        presence.rates,
        "Did clients come as often as intended? A point a client; on the line, exactly. In the band, "
        "as far off as independent rounds would scatter.",
    ),
)
WEIGHED = (
    Figured(
        weighing.weights,
        "What an update counted for over the whole run, times how often it came, against how often the "
        "client comes. At 1, all clients count alike; methods with memory have no such weight.",
    ),
    Figured(
        weighing.weights_over_rounds,
        "The weight of four clients, from the rarest to the most frequent, and 1/p of each in grey: the "
        "weight that would make the average unbiased. Replayed from the participation log.",
        (5.2, 4.4),
    ),
)
SERVED = (
    Figured(
        fairness.deciles,
        "Accuracy on the clients' own data after the last round, by tenths of the clients: those that "
        "delivered least to the left, most to the right.",
        read="Tenth",
    ),
    Figured(
        fairness.served,
        "Mean accuracy on their own data of clients that came, and of those that never did.",
        (5.2, 0.0),
    ),
    Figured(
        fairness.spread,
        "How far clients' accuracies lie apart, all seeds together: thin line 5 to 95 % of clients, "
        "thick line 25 to 75 %, mark the median. The shorter, the fairer.",
        (5.2, 0.0),
    ),
    Figured(
        fairness.classes,
        "Which classes the model knows, from those whose data took part to those whose data never did.",
        (5.6, 0.0),
    ),
)


def write_report(folders: Sequence[Path], out: Path | None = None) -> Path:
    """Write the report of one or several run directories; where it is."""
    several = [read_results(folder) for folder in folders]
    for results in several:
        if not results.cells:
            raise InputError(f"{results.folder} has no cells yet; a report must have at least one")
    if len({folder.resolve() for folder in folders}) < len(folders):
        raise InputError("a run directory is given twice; each must be another one")
    path = out or (folders[0] / REPORT if len(folders) == 1 else Path(REPORT))
    return keep(report(several), path)


def report(several: Sequence[Results]) -> Page:
    """The page that compares the methods of all these run directories."""
    results = merge(several)
    summary = summarise(results)
    with settings():
        sections = [
            Section("Summary", _summary(results, summary, several)),
            Section("Over the rounds", _pictures(OVER_ROUNDS, results)),
            Section("Who took part", _presence(several)),
            Section("What clients count for", _pictures(WEIGHED, results)),
            Section("Who is served", _pictures(SERVED, results)),
            Section("Settings and versions", _foot(several)),
        ]
    title = " and ".join(dict.fromkeys(each.config.run.name for each in several))
    kept = [section for section in sections if section.parts]
    return Page(title, lead(results, summary), kept, results.labels())


def lead(results: Results, summary: Summary) -> str:
    """What was compared, and what came of it, in two or three sentences."""
    run, data = results.config.run, results.config.data
    clients = max((len(cell.clients) for cell in results.cells), default=0)
    seeds = len({cell.seed for cell in results.cells})
    said = (
        f"{counted(len(summary.lines), 'method')}, {counted(seeds, 'seed')}, "
        f"{counted(run.rounds, 'round')}; {data.name}"
        + (f", {counted(clients, 'client')}" if clients else "")
        + f", participation {results.config.participation.process}."
    )
    column = next((c for c in summary.columns if c.key in ("tail", "test_loss")), None)
    if column is None or len(summary.lines) < 2:
        return said
    what = summary.heading(column).removesuffix(" %")
    front = ahead(summary, column)
    if len(front) == 1:
        return f"{said} {front[0]} is best by more than the spread over seeds ({what})."
    if front:
        together = f"{', '.join(front[:-1])} and {front[-1]}"
        return (
            f"{said} {together} are ahead of all others by more than the spread over seeds, and within "
            f"it of each other ({what})."
        )
    if seeds < 2:
        return f"{said} With one seed there is no spread, so the table marks no method as best."
    return f"{said} No method is best by more than the spread over seeds ({what})."


def _summary(results: Results, summary: Summary, several: Sequence[Results]) -> list[Part]:
    parts: list[Part] = []
    if len(several) > 1:
        folders = [
            f"{name}: `{each.folder}`" for name, each in zip(names(several), several, strict=True)
        ]
        parts.append(Bullets(folders))
    different = apart(several)
    if different:
        parts += [
            Text("Not only the methods differ, so compare with care:"),
            Bullets(different),
        ]
    columns = summary.columns
    rows = [
        [label(line), *(Best(text) if line.label == best else text for text, best in pairs)]
        for line, pairs in with_leaders(summary, columns)
    ]
    caption = "After the last round, unless the heading says otherwise."
    if any(line.seeds > 1 for line in summary.lines):
        caption += " Mean ± standard deviation over seeds; bold: best by more than that."
    parts.append(Table(caption, ["", *(summary.heading(column) for column in columns)], rows))
    if any(column.key in ("server_memory", "sent") for column in columns):
        parts.append(
            Text(
                "Memory is what a method keeps beyond the model and one running sum; – is none. Sent is "
                "both ways, for the updates that arrived."
            )
        )
    unfinished = [cell for cell in results.cells if cell.status != "done"]
    if unfinished:
        parts.append(
            Bullets(
                [
                    f"{cell.label}, seed {cell.seed}: {cell.status}, {cell.round} rounds played; not in "
                    "the table"
                    for cell in unfinished
                ]
            )
        )
    return parts


def _pictures(wanted: Sequence[Figured], results: Results, of: str = "") -> list[Part]:
    parts: list[Part] = []
    for make, caption, (width, height), read in wanted:
        drawn = make(results)
        if drawn is None:
            continue
        for legend in [each for each in drawn.legends if each.get_gid() == METHODS]:
            legend.remove()  # the page's toggles are the legend
        plots = [axes for axes in drawn.axes if axes.get_title(loc="left")]
        if len(plots) == 1:
            plots[0].set_title("")  # the caption says it
        # A page is narrower than a plot in a file, and its type is no smaller.
        drawn.set_size_inches(width, height or drawn.get_figheight())
        parts.append(Picture(drawn, of + caption, read))
    return parts


def _presence(several: Sequence[Results]) -> list[Part]:
    """Once for each world."""
    parts: list[Part] = []
    met: list[Any] = []
    for name, results in zip(names(several), several, strict=True):
        config = results.config
        world = (config.data, config.participation, config.run.rounds, config.run.seeds[0])
        if world not in met and results.cells:
            met.append(world)
            of = f"{name}, " if len(several) > 1 else ""
            cell = results.cells[0]
            parts += _pictures(PRESENT, results, f"{of}{cell.label}, seed {cell.seed}. ")
    return parts


def _foot(several: Sequence[Results]) -> list[Part]:
    parts: list[Part] = []
    for name, results in zip(names(several), several, strict=True):
        versions = _versions(results.folder)
        command = versions.pop("command", None)
        rows = [[key, str(value)] for key, value in versions.items()]
        if rows:
            of = f" of {name}" if len(several) > 1 else ""
            parts.append(
                Fold(f"Versions and machine{of}", [Table("As the run found them", ["", ""], rows)])
            )
        text = (results.folder / CONFIG).read_text(encoding="utf-8")
        inside: list[Part] = [Code(text)]
        if command:
            inside.insert(0, Text(f"Command: `{' '.join([Path(command[0]).name, *command[1:]])}`"))
        parts.append(Fold(f"Settings: {name}/{CONFIG}", inside))
    return parts


def _versions(folder: Path) -> dict[str, Any]:
    path = folder / "versions.json"
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    return found
