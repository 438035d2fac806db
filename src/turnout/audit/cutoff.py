"""FedAU's cutoff K for this very log: Theorem 3's trade, with the gaps as they are."""

import math

import numpy as np
from numpy.typing import NDArray

from turnout.audit.gaps import gaps_of
from turnout.audit.history import History
from turnout.theory.bound import Setting

_CANDIDATES = 40


def cutoff(history: History, rounds: int | None = None) -> Setting | None:
    """The K with the least K·log T/T + mean of (1 − p_n·ω_n)², T the rounds to be run.

    Theorem 3 has (1−p_n)^{2K} for the second term, which holds if rounds are independent. For any
    process p_n·ω_n tends to 1/E⌈gap/K⌉ (see `theory.intervals.shrinkage`), and the log has the
    gaps. None if no client came twice.

    >>> from turnout.audit.history import from_mask
    >>> cutoff(from_mask([[1, 1], [1, 0], [1, 0], [1, 0], [1, 1]] * 40)).value
    4.0
    """
    gaps, bounds = gaps_of(history)
    if not len(gaps):
        return None
    T = history.rounds if rounds is None else rounds
    seen = np.flatnonzero(np.diff(bounds) > 0)
    number = np.diff(bounds)[seen]
    # Many gaps are alike: count equal ones of a client once.
    client = np.repeat(np.arange(len(seen), dtype=np.int64), number)
    width = history.rounds + 1
    kinds, times = np.unique(client * width + gaps, return_counts=True)
    owner, length = kinds // width, kinds % width
    longest = int(gaps.max())
    offered = np.unique(np.geomspace(1, max(longest, 2), _CANDIDATES).round().astype(np.int64))

    def order(K: int) -> float:
        intervals = np.bincount(owner, weights=times * -(-length // K), minlength=len(seen))
        bias: NDArray[np.float64] = 1 - number / intervals
        return K * math.log(max(T, 2)) / T + float(np.square(bias).mean())

    orders = {K: order(K) for K in offered.tolist()}
    best = min(orders, key=lambda K: orders[K])
    reason = f"least K·log T/T + mean of (1 − pω)², from the gaps of {len(seen)} clients"
    return Setting("cutoff", "K", float(best), reason, "FedAU, Theorem 3", {reason: float(best)})
