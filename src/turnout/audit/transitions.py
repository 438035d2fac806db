"""A Markov chain for each client: how likely it is to come back, and to leave."""

from typing import NamedTuple

import numpy as np

from turnout.audit.history import History
from turnout.audit.rates import arrivals, normal_quantile


class Estimate(NamedTuple):
    value: float
    low: float
    high: float


class Chain(NamedTuple):
    """Pooled over the clients that came.

    Transitions of a chain are independent, so Wilson's intervals hold: of the average client,
    where clients differ.
    """

    join: Estimate
    """P(off→on)"""
    leave: Estimate
    """P(on→off)"""
    memory: float
    """λ = 1 − P(off→on) − P(on→off)"""
    spell: float
    """Mean rounds from coming to leaving."""


def chain(history: History, confidence: float = 0.95) -> Chain | None:
    """Counts of transitions; None if nobody ever comes or goes.

    >>> from turnout.audit.history import from_mask
    >>> found = chain(from_mask([[1], [1], [0], [0], [1], [1], [0], [0], [1]]))
    >>> found.leave.value, found.join.value, found.spell
    (0.5, 0.5, 2.0)
    """
    came = history.counts > 0
    first = np.zeros(history.clients, dtype=bool)
    last = np.zeros(history.clients, dtype=bool)
    first[came] = history.round[history.bounds[:-1][came]] == 0
    last[came] = history.round[history.bounds[1:][came] - 1] == history.rounds - 1
    spells = arrivals(history)
    on = int((history.counts - last).sum())  # rounds here, with a next round
    off = int(((history.rounds - history.counts) - (came & ~last))[came].sum())
    joins = int((spells - first)[came].sum())
    leaves = int((spells - last)[came].sum())
    if not on or not off:
        return None
    z = normal_quantile(0.5 + confidence / 2)
    join, leave = _wilson(joins, off, z), _wilson(leaves, on, z)
    spell = float("inf") if leaves == 0 else on / leaves
    return Chain(join, leave, 1 - join.value - leave.value, spell)


def _wilson(hits: int, trials: int, z: float) -> Estimate:
    share = hits / trials
    middle = (share + z**2 / (2 * trials)) / (1 + z**2 / trials)
    half = z / (1 + z**2 / trials) * np.sqrt(share * (1 - share) / trials + z**2 / (4 * trials**2))
    return Estimate(share, max(0.0, float(middle - half)), min(1.0, float(middle + half)))
