"""FedAU: weights learned online from each client's participation history.

Wang & Ji, "A Lightweight Method for Tackling Unknown Participation Statistics in Federated
Averaging", ICLR 2024.

Algorithm 2 of the paper walks through all clients in every round: S counts the rounds of the open
interval; when the client takes part, or when S reaches the cutoff K, the interval closes and joins
the mean ω of the M intervals so far. Here the walk is lazy: an absent client costs nothing, and
the intervals that its absence has closed at K are folded in when somebody asks. With g rounds
missed since the interval opened, these are ⌊g/K⌋ intervals of length K, and participation then
closes one of (g mod K) + 1 rounds.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from turnout.algorithm import Algorithm, Rows, State, WeightRule
from turnout.algorithms.recipe import recipe
from turnout.errors import require
from turnout.parts.local import Local
from turnout.parts.transform import sgd


@recipe
def fedau(
    cutoff: int | None = 50,
    decay: float | None = None,
    groups: ArrayLike | None = None,
    server_lr: float = 1.0,
    local: Local = Local(),
) -> Algorithm:
    """FedAU: x += (η/N) Σ_{i∈S} ω_i Δ_i, with ω_i the mean of client i's participation intervals.

    `cutoff` is K (None: K → ∞). `decay` replaces the plain mean of intervals by an exponential
    one, each new interval counting for that much. `groups` (a group number for each client) lets
    the clients of a group share one history.
    """
    return Algorithm("fedau", interval_means(cutoff, decay, groups), sgd(server_lr), local)


def interval_means(
    cutoff: int | None = 50, decay: float | None = None, groups: ArrayLike | None = None
) -> WeightRule:
    """The weight rule of FedAU: ω_i is the mean length of client i's participation intervals.

    A group counts member-rounds: its interval grows by one a member and round, and when j members
    take part it closes j intervals that share that length. So ω estimates one over the group's
    mean rate, and a group of one is exactly Algorithm 2.
    """
    require(cutoff is None or cutoff >= 1, "cutoff", cutoff, "a whole number from 1, or none")
    require(decay is None or 0 < decay <= 1, "decay", decay, "in (0, 1], or none")
    of = None if groups is None else np.asarray(groups, dtype=np.int64)
    sizes = None if of is None else np.bincount(of)

    def init(clients: int) -> State:
        if of is not None:
            require(len(of) == clients, "groups", f"{len(of)} values", f"{clients}, one a client")
        histories = clients if sizes is None else len(sizes)
        return {
            "opened": np.zeros(histories, dtype=np.int32),  # round in which the interval began
            "intervals": np.zeros(histories, dtype=np.int32),  # M
            "mean": np.ones(histories),  # ω
        }

    def fold(state: State, round: int, rows: Rows) -> _Folded:
        """ω and M with the intervals that absence has closed, and the rounds still open."""
        missed = np.maximum(round - state["opened"][rows], 0)
        members = np.int64(1) if sizes is None else sizes[rows]
        if cutoff is None:
            return _Folded(state["mean"][rows], state["intervals"][rows], missed, members)
        closed = missed // cutoff
        mean, count = _join(
            state["mean"][rows], state["intervals"][rows], closed * members, cutoff, decay
        )
        return _Folded(mean, count, missed - closed * cutoff, members)

    def weigh(state: State, round: int, rows: Rows) -> NDArray[np.float64]:
        return fold(state, round, rows if of is None else of[rows]).mean

    def observe(state: State, round: int, rows: Rows) -> State:
        took_part: NDArray[np.int64] | np.int64 = np.int64(1)
        if of is not None:
            rows, took_part = np.unique(of[rows], return_counts=True)
        mean, count, missed, members = fold(state, round, rows)
        # Members of one group may be observed in several calls a round: the first closes the
        # interval's member-rounds, the others add intervals of length 0 to the same mean.
        fresh = state["opened"][rows] <= round
        length = np.where(fresh, (missed + 1) * members, 0) / took_part
        mean, count = _join(mean, count, took_part, length, decay)
        state["mean"][rows] = mean
        state["intervals"][rows] = count
        state["opened"][rows] = round + 1
        return state

    return WeightRule(init, weigh, observe)


class _Folded(NamedTuple):
    mean: NDArray[np.float64]
    intervals: NDArray[np.int64]
    missed: NDArray[np.int64]
    members: NDArray[np.int64] | np.int64


def _join(
    mean: NDArray[np.float64],
    count: NDArray[np.int64],
    more: NDArray[np.int64] | np.int64,
    length: ArrayLike,
    decay: float | None,
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """The mean of `count` intervals, joined by `more` intervals of one length."""
    lengths = np.asarray(length, dtype=np.float64)
    total = count + more
    if decay is None:
        share = more / np.maximum(total, 1)
    else:
        share = np.where(count == 0, np.minimum(more, 1), 1 - (1 - decay) ** more)
    return mean + share * (lengths - mean), total
