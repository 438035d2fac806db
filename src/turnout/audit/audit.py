"""The audit as a whole: one function from a log to all findings."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from turnout.audit.classes import ClassCounts, read_classes
from turnout.audit.gaps import Gaps, gaps
from turnout.audit.history import History
from turnout.audit.impact import Impact, impact
from turnout.audit.process import Fit, fit
from turnout.audit.rates import Federation, Rates, federation, rates
from turnout.audit.read import read_history
from turnout.audit.recommend import Advice, recommend


@dataclass(frozen=True, eq=False)
class Audit:
    history: History
    rates: Rates
    gaps: Gaps
    federation: Federation
    fit: Fit
    impact: Impact
    advice: Advice
    classes: ClassCounts | None = None
    source: str | None = None
    """The name of the file, if there is one."""


def audit(
    log: History | str | Path,
    round_s: float | None = None,
    clients: int | None = None,
    classes: str | Path | None = None,
    intended: Literal["equal", "samples"] = "equal",
    parameters: int = 1_000_000,
    begin: Callable[[str], object] = lambda step: None,
) -> Audit:
    """Who shows up, what that does to the model, and what to run.

    `begin` is called with the name of each step: reading, processes, weights.

    >>> from turnout.participation import bernoulli
    >>> from turnout.audit.history import from_mask
    >>> found = audit(from_mask(bernoulli([0.1, 0.9] * 20).mask(300)))
    >>> found.fit.name, found.advice.method.name
    ('independent', 'fedau')
    """
    begin("reading")
    history = log if isinstance(log, History) else read_history(log, round_s, clients)
    counts = None
    if classes is not None:
        counts, history = read_classes(classes, history)
    begin("processes")
    shares = rates(history)
    found = fit(history)
    begin("weights")
    effect = impact(history, shares, counts, intended)
    advice = recommend(history, found, effect, parameters, counts)
    return Audit(
        history=history,
        rates=shares,
        gaps=gaps(history),
        federation=federation(history),
        fit=found,
        impact=effect,
        advice=advice,
        classes=counts,
        source=None if isinstance(log, History) else Path(log).name,
    )
