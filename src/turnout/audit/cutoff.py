"""FedAU's cutoff K for this very log: the K under which its weights come closest to what is intended.

Theorem 3 trades a variance K·log T/T against a bias, the mean of (1−p_n)^{2K}, for independent
rounds. Its constants are hidden, and spells and days are not independent rounds. But FedAU's
weights follow from the log alone, so both can be had together: run it along the log.
"""

import math

import numpy as np
from numpy.typing import NDArray

from turnout.audit.history import History
from turnout.draws import generator
from turnout.theory.bound import Setting

_CANDIDATES = 40
_CLIENTS = 2000


def cutoff(history: History, seed: int = 0) -> Setting | None:
    """The K whose implicit weights (mean of ω·1{n ∈ S}) are nearest to equal ones.

    Tried are 40, up to the longest absence and to T/log T, where Theorem 3's variance K·log T/T
    reaches 1 and promises nothing any more. None if nobody came twice. Of many clients, 2000
    drawn at random tell.

    >>> from turnout.audit.history import from_mask
    >>> cutoff(from_mask([[1, 1], [1, 0], [1, 0], [1, 0], [1, 1]] * 40)).value
    4.0
    """
    rows = np.flatnonzero(history.counts > 0)
    if not len(rows) or int(history.counts.max()) < 2:
        return None
    if len(rows) > _CLIENTS:
        rows = np.sort(generator(seed, "audit cutoff").permutation(rows)[:_CLIENTS])
    counts = history.counts[rows]
    round = np.concatenate([history.of(client) for client in rows.tolist()]).astype(np.int64)
    first = np.cumsum(counts) - counts
    opened = np.concatenate([[0], round[:-1] + 1])  # where the interval began that ends here
    opened[first] = 0
    T = history.rounds
    most = min(int((round - opened).max()) + 1, T / math.log(max(T, 3)))
    offered = np.unique(np.geomspace(1, max(most, 2), _CANDIDATES).round().astype(np.int64))
    wrong = {K: _misplaced(round, opened, first, counts, K) for K in offered.tolist()}
    best = min(wrong, key=lambda K: wrong[K])
    reason = (
        f"of {len(wrong)} tried along this log it leaves least in the wrong place, {wrong[best]:.1%} "
        "among the clients that came"
    )
    return Setting("cutoff", "K", float(best), reason, "FedAU, Algorithm 2", {reason: float(best)})


def weights(
    round: NDArray[np.int64],
    opened: NDArray[np.int64],
    first: NDArray[np.int64],
    counts: NDArray[np.int64],
    K: int,
) -> NDArray[np.float64]:
    """ω of Algorithm 2 at every participation, client after client (1 until an interval has closed).

    Before round t of a participation, with g rounds missed since the interval opened, the client's
    intervals are those closed by its earlier participations and ⌊g/K⌋ closed at K.
    """
    closed = (round - opened) // K
    ended = np.cumsum(closed + 1)
    before = ended - (closed + 1)
    before -= np.repeat(before[first], counts)
    intervals = before + closed
    length = opened + closed * K
    omega: NDArray[np.float64] = np.ones(len(round))
    np.divide(length, intervals, out=omega, where=intervals > 0)
    return omega


def _misplaced(
    round: NDArray[np.int64],
    opened: NDArray[np.int64],
    first: NDArray[np.int64],
    counts: NDArray[np.int64],
    K: int,
) -> float:
    """Total variation between the implicit weights and equal ones."""
    sums = np.add.reduceat(weights(round, opened, first, counts, K), first)
    return float(0.5 * np.abs(sums / sums.sum() - 1 / len(sums)).sum())
