"""The audit as a whole: one function from a log to all findings."""

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


def audit(
    log: History | str | Path,
    round_s: float | None = None,
    clients: int | None = None,
    classes: str | Path | None = None,
    intended: Literal["equal", "samples"] = "equal",
    parameters: int = 1_000_000,
) -> Audit:
    """Who shows up, what that does to the model, and what to run.

    >>> from turnout.participation import bernoulli
    >>> from turnout.audit.history import from_mask
    >>> found = audit(from_mask(bernoulli([0.1, 0.9] * 20).mask(300)))
    >>> found.fit.name, found.advice.method.name
    ('independent', 'fedau')
    """
    history = log if isinstance(log, History) else read_history(log, round_s, clients)
    counts = None
    if classes is not None:
        counts, history = read_classes(classes, history)
    shares = rates(history)
    found = fit(history)
    effect = impact(history, shares, counts, intended)
    advice = recommend(history, found, effect, parameters)
    return Audit(history, shares, gaps(history), federation(history), found, effect, advice, counts)
