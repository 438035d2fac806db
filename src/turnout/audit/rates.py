"""How often each client comes, with intervals, and what the federation looks like."""

from dataclasses import dataclass
from math import erf, sqrt

import numpy as np
from numpy.typing import NDArray

from turnout.audit.history import History

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Rates:
    """Shares of rounds, a client each. `low` and `high` hold the rate with the given confidence."""

    rate: Floats
    low: Floats
    high: Floats
    effective_rounds: Floats
    """How many independent rounds would tell as much as this client's did."""
    confidence: float


def rates(history: History, confidence: float = 0.95) -> Rates:
    """Wilson intervals for T·(1 − λ)/(1 + λ) rounds, the worth of T rounds that are correlated.

    For a client that comes and goes as a Markov chain, presence k rounds apart has correlation λ^k
    with λ = 1 − P(off→on) − P(on→off), and the mean of T rounds has (1 + λ)/(1 − λ) times the
    variance of T independent ones. λ is the client's own, from its transitions; clients with
    hardly any borrow those of the others. A negative λ is not used: a client that comes
    on schedule gets an interval that is wider than needed.

    >>> from turnout.audit.history import from_mask
    >>> found = rates(from_mask([[1], [0], [0], [1], [0], [0], [0], [1], [0], [0]] * 10))
    >>> found.rate.tolist(), found.low.round(2).tolist(), found.high.round(2).tolist()
    ([0.3], [0.22], [0.4])
    """
    rounds, k = history.rounds, history.counts
    share = k / rounds
    memory = np.clip(correlation(history), 0, None)
    worth = np.clip(rounds * (1 - memory) / (1 + memory), 1, rounds)
    z = normal_quantile(0.5 + confidence / 2)
    middle = (share + z**2 / (2 * worth)) / (1 + z**2 / worth)
    half = z / (1 + z**2 / worth) * np.sqrt(share * (1 - share) / worth + z**2 / (4 * worth**2))
    low = np.where(k == 0, 0.0, np.clip(middle - half, 0, 1))
    high = np.where(k == rounds, 1.0, np.clip(middle + half, 0, 1))
    return Rates(share, low, high, worth, confidence)


def arrivals(history: History) -> NDArray[np.int64]:
    """How often each client came after a round in which it was away (its first spell included)."""
    apart = np.concatenate([[1], np.diff(history.round.astype(np.int64))]) != 1
    starts = np.zeros(len(history.round), dtype=bool)
    starts[history.bounds[:-1][history.counts > 0]] = True
    sums = np.concatenate([[0], np.cumsum(apart | starts)])
    return np.diff(sums[history.bounds])


def correlation(history: History) -> Floats:
    """λ of every client: the lag-1 correlation of a chain with its counts of transitions.

    One transition of each kind, at the federation's own rate, is added to each client's, so that a
    client with one long spell is not taken for certain, and one without any has the others' λ.
    """
    rounds, k, spells = history.rounds, history.counts, arrivals(history)
    away = np.maximum(rounds - k, 0)
    join = (spells.sum() + 1e-9) / max(float(away[k > 0].sum()), 1.0)
    leave = (spells.sum() + 1e-9) / max(float(k.sum()), 1.0)
    on = (spells + 1) / (away + 1 / max(join, 1e-12))
    off = (spells + 1) / (k + 1 / max(leave, 1e-12))
    memory: Floats = np.clip(1 - on - off, -1, 1 - 2 / rounds)
    return memory


def normal_quantile(chance: float) -> float:
    """By bisection: the standard library has no inverse of erf.

    >>> round(normal_quantile(0.975), 3)
    1.96
    """
    low, high = -40.0, 40.0
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if (1 + erf(middle / sqrt(2))) / 2 < chance else (low, middle)
    return (low + high) / 2


@dataclass(frozen=True, eq=False)
class Federation:
    """How participation is spread over clients and rounds."""

    clients: int
    rounds: int
    mean_rate: float
    rate_percentiles: dict[str, float]
    gini: float
    """Of the rates: 0 if all come equally often, towards 1 if a few do all the work."""
    never_seen: int
    never_listed: int
    """Those of them of whom the log has no entry at all."""
    once_seen: int
    mean_per_round: float
    effective_per_round: float
    """The harmonic mean of |S| over rounds in which anybody came: with equal weights 1/|S| the
    variance of a round's average is that of so many clients."""
    effective_clients: float
    """1/Σ s_n², s_n the client's share of all participations: so many clients that come equally
    often would do as much."""
    empty_rounds: int
    lost: float | None
    """Share of those asked whose update never arrived."""


_PERCENTILES = {"smallest": 0.0, "10 %": 0.1, "median": 0.5, "90 %": 0.9, "largest": 1.0}


def federation(history: History) -> Federation:
    k, came = history.counts, history.per_round
    share = k / history.rounds
    spread = np.quantile(share, list(_PERCENTILES.values())).tolist()
    total, busy = int(k.sum()), came[came > 0]
    listed = history.listed if history.listed is not None else k > 0
    asked = None if history.asked is None else int(history.asked.sum())
    return Federation(
        clients=history.clients,
        rounds=history.rounds,
        mean_rate=float(share.mean()),
        rate_percentiles=dict(zip(_PERCENTILES, spread, strict=True)),
        gini=gini(share),
        never_seen=int((k == 0).sum()),
        never_listed=int((~listed).sum()),
        once_seen=int((k == 1).sum()),
        mean_per_round=float(came.mean()),
        effective_per_round=float(1 / (1 / busy).mean()) if len(busy) else 0.0,
        effective_clients=float(total**2 / (k.astype(np.float64) ** 2).sum()) if total else 0.0,
        empty_rounds=int((came == 0).sum()),
        lost=None if not asked else 1 - total / asked,
    )


def gini(values: Floats) -> float:
    """Half the mean difference between two of the values, over their mean.

    >>> gini(np.array([1.0, 1.0])), gini(np.array([0.0, 1.0]))
    (0.0, 0.5)
    """
    ordered = np.sort(values)
    total = float(ordered.sum())
    if total == 0:
        return 0.0
    places = np.arange(1, len(ordered) + 1)
    return float(2 * (places * ordered).sum() / (len(ordered) * total) - 1 - 1 / len(ordered))
