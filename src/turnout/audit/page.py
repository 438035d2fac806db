"""The audit as a page for a browser."""

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure

from turnout.audit import figures, words
from turnout.audit.audit import Audit
from turnout.audit.plain import client_columns
from turnout.audit.process import LEVEL
from turnout.experiments.style import settings
from turnout.report.page import Bullets, Code, Fold, Page, Part, Picture, Section, Table, Text

_CLASSES = 100
_CLIENTS = 300


class Figured(NamedTuple):
    make: Callable[[Audit], Figure | None]
    caption: str


WHO = (
    Figured(
        figures.attendance,
        "Who came when: a row a client, from frequent to rare. Many clients or rounds are thinned to "
        "the share of rounds delivered.",
    ),
    Figured(
        figures.rates,
        "How often clients come, from the rarest to the most frequent, with the interval that holds "
        "each one's rate.",
    ),
    Figured(figures.over_time, "How many clients came, over the log."),
    Figured(
        figures.gaps,
        "How long until a client comes again: the share of gaps that last at least so many rounds.",
    ),
)
PROCESS = (
    Figured(
        figures.spectrum,
        "What repeats: how much presence varies with each period, over what spells alone explain "
        "(1: no more than that). A line that stands out is a cycle.",
    ),
    Figured(
        figures.cycle,
        "One cycle: the mean number of clients at each of its places, and one standard deviation over "
        "the cycles of the log.",
    ),
)
EFFECT = (
    Figured(
        figures.weights,
        "What a client counts for in the objective that is really minimised along this log, against "
        "what was intended. At 0: never heard.",
    ),
    Figured(
        figures.classes,
        "What classes weigh, against what was intended; those first that are heard least.",
    ),
)
ADVICE = (
    Figured(
        figures.cutoffs,
        "How K was chosen: the weight that FedAU, run along this log, leaves in the wrong place with "
        "each cutoff. Small K keeps rare clients small, large K lets chance in.",
    ),
)


def page(found: Audit, experiment: str = "") -> Page:
    """Everything that the audit found; `experiment` is the text of the emitted one."""
    with settings():
        sections = [
            Section("What to run", [*_advice(found, experiment), *_pictures(ADVICE, found)]),
            Section(
                "Who shows up",
                [_pairs("Clients and rounds.", words.who(found)), *_pictures(WHO, found)],
            ),
            Section("Which process", [*_process(found), *_pictures(PROCESS, found)]),
            Section(
                "What it does under plain averaging", [*_effect(found), *_pictures(EFFECT, found)]
            ),
            Section("The log", [_pairs("What was read.", words.log(found)), _clients(found)]),
        ]
    title = "Participation audit" + (f": {found.source}" if found.source else "")
    return Page(title, words.verdict(found), sections)


def _pictures(wanted: Iterable[Figured], found: Audit) -> list[Part]:
    made = [(make(found), caption) for make, caption in wanted]
    return [Picture(drawn, caption) for drawn, caption in made if drawn is not None]


def _pairs(caption: str, pairs: Iterable[tuple[str, str]]) -> Table:
    return Table(caption, ["", ""], list(pairs))


def _advice(found: Audit, experiment: str) -> list[Part]:
    advice = found.advice
    parts: list[Part] = [
        Text(f"`{advice.method.label}{words.settings(advice.method)}`"),
        Bullets(advice.reasons),
        Text("What it costs:"),
        Bullets(advice.costs),
    ]
    if experiment:
        parts.append(Text("To try it on this very log: `turnout run experiment.toml`."))
        parts.append(Fold("experiment.toml", [Code(experiment)]))
    return parts


def _who(found: Audit) -> list[Part]:
    return [_pairs("Clients and rounds.", words.who(found))]


def _process(found: Audit) -> list[Part]:
    parts: list[Part] = [_pairs("What fits, the most telling first.", words.process(found))]
    if found.fit.tests:
        heads = ["simpler explanation", "statistic", "p", f"at level {LEVEL:g} (Holm)"]
        caption = (
            f"What was tested, on {found.fit.clients_used:,} clients; p is corrected for all frequencies "
            "tried, and Holm's procedure for all tests."
        )
        parts.append(Table(caption, heads, [words.tested(test) for test in found.fit.tests]))
    fitted = list(words.fitted(found))
    return [*parts, _pairs("What was fitted, with 95 % intervals.", fitted)] if fitted else parts


def _effect(found: Audit) -> list[Part]:
    parts: list[Part] = [
        _pairs("Weights of clients, against what was intended.", words.effect(found))
    ]
    rows = list(words.class_rows(found, _CLASSES))
    if rows:
        caption = "Weights of classes, those first that are heard least."
        parts.append(Fold("Classes", [Table(caption, words.CLASS_HEADS, rows)]))
    return parts


def _clients(found: Audit) -> Fold:
    columns = client_columns(found)
    number = found.history.clients
    order = np.argsort(found.history.counts, kind="stable")[:_CLIENTS].tolist()
    rows = [[_cell(values[row]) for values in columns.values()] for row in order]
    caption = "From the rarest on; `clients.csv` has the same."
    if number > _CLIENTS:
        caption = f"The {_CLIENTS} rarest of {number:,}; `clients.csv` has all."
    heads = [name.replace("_", " ") for name in columns]
    return Fold("Clients one by one", [Table(caption, heads, rows)])


def _cell(value: Any) -> str:
    if isinstance(value, str):
        return value
    return "–" if np.isnan(value) else f"{value:.4g}"
