"""FedAU's cutoff K for this very log: the K under which its weights come closest to what is intended.

Theorem 3 trades a variance K·log T/T against a bias, the mean of (1−p_n)^{2K}, for independent
rounds. Its constants are hidden, and spells and days are not independent rounds. But FedAU's
weights follow from the log alone, so both can be had together: run it along the log.

Not client by client, though. Chance gives one client too much and the next too little, and among
many that hold alike data this averages out; a K that keeps rare clients small does not. So weights
are compared by classes where these are known, and else by tenths of the clients, rare to frequent:
as if availability went with data, which is when it matters.
"""

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from turnout.audit.history import History
from turnout.draws import generator
from turnout.theory.bound import Setting

Floats = NDArray[np.float64]

_CANDIDATES = 40
_CLIENTS = 2000
_GROUPS = 10


class Cutoff(NamedTuple):
    setting: Setting
    misplaced: Mapping[int, float]
    """Of each K that was tried: how much of the weight it leaves in the wrong place."""
    among: str


def cutoff(
    history: History, intended: Floats | None = None, mix: Floats | None = None, seed: int = 0
) -> Cutoff | None:
    """The K whose implicit weights (q_n times the mean of ω·1{n ∈ S}) are nearest to the intended q_n.

    `mix` [clients, classes] says what share of each client's data is of which class. Tried are 40,
    up to the longest absence and to T/log T, where Theorem 3's variance K·log T/T reaches 1 and
    promises nothing any more. None if nobody came twice. Of many clients, 2000 drawn at random tell.

    >>> from turnout.audit.history import from_mask
    >>> cutoff(from_mask([[1, 1], [1, 0], [1, 0], [1, 0], [1, 1]] * 40)).setting.value
    4.0
    """
    rows = np.flatnonzero(history.counts > 0)
    if not len(rows) or int(history.counts.max()) < 2:
        return None
    if len(rows) > _CLIENTS:
        rows = np.sort(generator(seed, "audit cutoff").permutation(rows)[:_CLIENTS])
    stretches = _stretches(history, rows)
    T = history.rounds
    longest = int((stretches.round - stretches.opened).max()) + 1
    most = min(longest, T / math.log(max(T, 3)))
    offered = np.unique(np.geomspace(1, max(most, 2), _CANDIDATES).round().astype(np.int64))
    wanted = np.ones(len(rows)) if intended is None else intended[rows]
    if wanted.sum() == 0:
        return None
    groups = tenths(history.counts[rows]) if mix is None else mix[rows]
    among = "tenths of the clients that came, rare to frequent" if mix is None else "classes"
    wrong = {K: _misplaced(stretches, K, wanted, groups) for K in offered.tolist()}
    best = min(wrong, key=lambda K: wrong[K])
    reason = (
        f"of {len(wrong)} tried along this log it leaves least in the wrong place, "
        f"{100 * wrong[best]:.1f} % among {among}"
    )
    found = Setting("cutoff", "K", float(best), reason, "FedAU, Algorithm 2", {reason: float(best)})
    return Cutoff(found, wrong, among)


def tenths(counts: NDArray[np.int64]) -> Floats:
    """Clients by how often they come, as a mix: each in one of ten groups of about equal size.

    >>> tenths(np.array([30, 10, 20])).tolist()
    [[0.0, 0.0, 1.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]
    """
    number = min(_GROUPS, len(counts))
    rank = np.empty(len(counts), dtype=np.int64)
    rank[np.argsort(counts, kind="stable")] = np.arange(len(counts))
    groups: Floats = np.eye(number)[rank * number // len(counts)]
    return groups


def implicit(history: History, K: int) -> Floats:
    """The weights that FedAU cut at K puts on the clients along this log; they sum to 1.

    >>> from turnout.audit.history import from_mask
    >>> log = from_mask([[1, 1], [1, 0], [1, 0], [1, 0]] * 25)
    >>> implicit(log, K=100).round(2).tolist(), implicit(log, K=2).round(2).tolist()
    ([0.54, 0.46], [0.68, 0.32])
    """
    rows = np.flatnonzero(history.counts > 0)
    shares = np.zeros(history.clients)
    sums = _sums(_stretches(history, rows), K)
    shares[rows] = sums / sums.sum()
    return shares


class Stretches(NamedTuple):
    """Participations of some clients, client after client, and the rounds that led to each."""

    round: NDArray[np.int64]
    opened: NDArray[np.int64]
    """Where the interval began that ends here."""
    first: NDArray[np.int64]
    """Where each client's participations begin."""
    counts: NDArray[np.int64]


def _stretches(history: History, rows: NDArray[np.int64]) -> Stretches:
    counts = history.counts[rows]
    round = np.concatenate([history.of(client) for client in rows.tolist()]).astype(np.int64)
    first = np.cumsum(counts) - counts
    opened = np.concatenate([[0], round[:-1] + 1])
    opened[first] = 0
    return Stretches(round, opened, first, counts)


def weights(stretches: Stretches, K: int) -> Floats:
    """ω of Algorithm 2 at every participation, client after client (1 until an interval has closed).

    Before round t of a participation, with g rounds missed since the interval opened, the client's
    intervals are those closed by its earlier participations and ⌊g/K⌋ closed at K.
    """
    round, opened, first, counts = stretches
    closed = (round - opened) // K
    ended = np.cumsum(closed + 1)
    before = ended - (closed + 1)
    before -= np.repeat(before[first], counts)
    intervals = before + closed
    length = opened + closed * K
    omega: Floats = np.ones(len(round))
    np.divide(length, intervals, out=omega, where=intervals > 0)
    return omega


def _sums(stretches: Stretches, K: int) -> Floats:
    found: Floats = np.add.reduceat(weights(stretches, K), stretches.first)
    return found


def _misplaced(stretches: Stretches, K: int, wanted: Floats, groups: Floats) -> float:
    """Total variation between implicit and intended weights, by groups."""
    heard = wanted * _sums(stretches, K)
    excess = heard / heard.sum() - wanted / wanted.sum()
    return float(0.5 * np.abs(excess @ groups).sum())
