"""How long it takes from one participation of a client to its next."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from turnout.audit.history import History

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Gaps:
    """Rounds from one participation to the next (1: in the next round), a client each.

    NaN where a client has come less than twice. The longest absence also counts the rounds before
    a client's first participation and after its last, which may be parts of longer ones.
    """

    mean: Floats
    median: Floats
    p90: Floats
    longest: Floats
    longest_absence: NDArray[np.int64]
    overall: dict[str, float]
    """Percentiles of all gaps of all clients."""


def gaps_of(history: History) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """All gaps, client after client, and the bounds of each client's.

    >>> from turnout.audit.history import from_mask
    >>> gaps, bounds = gaps_of(from_mask([[1, 1], [0, 1], [1, 0]]))
    >>> gaps.tolist(), bounds.tolist()
    ([2, 1], [0, 1, 2])
    """
    when = history.round.astype(np.int64)
    apart = when[1:] - when[:-1]
    own = np.ones(len(apart), dtype=bool)
    ends = history.bounds[1:-1]
    own[ends[(ends > 0) & (ends < len(history.round))] - 1] = False
    bounds = np.concatenate([[0], np.cumsum(np.maximum(history.counts - 1, 0))])
    return apart[own], bounds


def gaps(history: History) -> Gaps:
    every, bounds = gaps_of(history)
    number = np.diff(bounds)
    some = number > 0
    client = np.repeat(np.arange(history.clients, dtype=np.int64), number)
    # Sorted within clients by one integer a gap.
    ordered = np.sort(client * (history.rounds + 1) + every) % (history.rounds + 1)

    def at(share: float) -> Floats:
        place = bounds[:-1] + np.ceil(share * number).astype(np.int64) - 1
        return (
            np.where(some, ordered[np.where(some, place, 0)], np.nan)
            if len(ordered)
            else _nan(some)
        )

    sums = np.concatenate([[0], np.cumsum(every)])
    total = np.diff(sums[bounds])
    mean = np.divide(total, number, out=_nan(some), where=some)
    overall = {}
    if len(every):
        overall["mean"] = float(every.mean())
        for label, share in (("median", 0.5), ("90 %", 0.9), ("99 %", 0.99), ("longest", 1.0)):
            overall[label] = float(np.quantile(every, share, method="inverted_cdf"))
    return Gaps(mean, at(0.5), at(0.9), at(1.0), _absence(history, at(1.0)), overall)


def _nan(some: NDArray[np.bool_]) -> Floats:
    return np.full(len(some), np.nan)


def _absence(history: History, longest: Floats) -> NDArray[np.int64]:
    """The longest stretch of rounds without the client."""
    seen = history.counts > 0
    inside = np.nan_to_num(longest, nan=1.0) - 1
    absence = np.full(history.clients, float(history.rounds))
    first = history.round[history.bounds[:-1][seen]]
    last = history.round[history.bounds[1:][seen] - 1]
    absence[seen] = np.maximum(np.maximum(first, history.rounds - 1 - last), inside[seen])
    return absence.astype(np.int64)
