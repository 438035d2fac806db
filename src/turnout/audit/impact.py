"""What participation does to the model: the objective that plain averaging minimises along this log."""

from dataclasses import dataclass
from math import pi, sqrt
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from turnout.audit.classes import ClassCounts
from turnout.audit.history import History
from turnout.audit.rates import Rates
from turnout.errors import require
from turnout.theory.objective import Objective, objective

Floats = NDArray[np.float64]

AT_RISK = 0.5


@dataclass(frozen=True, eq=False)
class ClassImpact:
    names: tuple[str, ...]
    intended: Floats
    """Weight of each class in f."""
    implicit: Floats
    """Its weight in h, which plain averaging minimises."""
    unseen: Floats
    """Share of each class's intended weight held by clients that never came."""

    @property
    def total_variation(self) -> float:
        return float(0.5 * np.abs(self.implicit - self.intended).sum())

    @property
    def ratio(self) -> Floats:
        some = self.intended > 0
        return np.divide(self.implicit, self.intended, out=np.ones(len(some)), where=some)

    @property
    def worst(self) -> int:
        return int(self.ratio.argmin())

    @property
    def at_risk(self) -> list[int]:
        """Classes with less than half of their intended weight."""
        return np.flatnonzero(self.ratio < AT_RISK).tolist()


@dataclass(frozen=True, eq=False)
class Impact:
    objective: Objective
    """Weights of the clients when the server divides by those who came; see turnout.theory."""
    by_chance: float
    """About the total variation that equal rates would show in a log so short."""
    classes: ClassImpact | None


def impact(
    history: History,
    rates: Rates,
    classes: ClassCounts | None = None,
    intended: Literal["equal", "samples"] = "equal",
) -> Impact:
    """Along the log itself: p̃_n ∝ Σ_t 1{n ∈ S_t}/|S_t|, whatever the process.

    >>> from turnout.audit.history import from_mask
    >>> from turnout.audit.rates import rates
    >>> history = from_mask([[1, 0], [1, 1]])
    >>> impact(history, rates(history)).objective.shares.tolist()
    [0.75, 0.25]
    """
    came = history.per_round
    require(len(history.round) > 0, "the number of participations in the log", 0, "at least 1")
    weights = 1 / came[history.round]
    shares = np.bincount(history.client, weights=weights, minlength=history.clients)
    wanted = np.ones(history.clients)
    if intended == "samples":
        require(
            classes is not None, "intended", intended, "'equal', where class counts are not given"
        )
        wanted = (classes.counts if classes is not None else wanted[:, None]).sum(axis=1)
    found = objective(shares, wanted)
    return Impact(found, _by_chance(rates), None if classes is None else _classes(found, classes))


def _by_chance(rates: Rates) -> float:
    """½ Σ (1/N) E|p̂_n/p̄ − 1| if all rates were the mean one.

    Normal, with each client's own worth of rounds.
    """
    mean = float(rates.rate.mean())
    if mean in (0.0, 1.0):
        return 0.0
    spread = np.sqrt((1 - mean) / (mean * rates.effective_rounds))
    return float(min(1.0, 0.5 * sqrt(2 / pi) * spread.mean()))


def _classes(found: Objective, classes: ClassCounts) -> ClassImpact:
    """A class weighs what the clients' weights give to it, through the mix of each."""
    mix = classes.mix
    intended, implicit = found.intended @ mix, found.shares @ mix
    unseen = (found.intended * (found.shares == 0)) @ mix
    return ClassImpact(
        classes.names,
        intended / max(intended.sum(), 1e-300),
        implicit / max(implicit.sum(), 1e-300),
        np.divide(unseen, intended, out=np.zeros(len(unseen)), where=intended > 0),
    )
