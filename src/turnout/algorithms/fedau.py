"""FedAU: weights learned online from each client's participation history.

Wang & Ji, "A Lightweight Method for Tackling Unknown Participation Statistics in Federated
Averaging", ICLR 2024.

Algorithm 2 of the paper walks through all clients in every round: S counts the rounds of the open
interval; when the client takes part, or when S reaches the cutoff K, the interval closes and joins
the mean ω of the M intervals so far. Here the walk is lazy: an absent client costs nothing, and
the intervals that its absence has closed at K are folded in when somebody asks. With g rounds
missed since the interval opened, these are ⌊g/K⌋ intervals of length K, and participation then
closes one of (g mod K) + 1 rounds. Sums are kept rather than means (M·ω and M), so that intervals
may be added in any order and in as many parts as updates arrive in.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from turnout.algorithm import Algorithm, Rows, State, WeightRule
from turnout.algorithms.recipe import recipe
from turnout.errors import require
from turnout.parts.grouping import group_numbers, require_one_each
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

    `cutoff` is K (None: K → ∞). With `decay` the mean of intervals forgets: whenever one closes,
    those before it count for 1 − decay of what they did. `groups` (a group number for each
    client) lets the clients of a group share one history.
    """
    return Algorithm("fedau", interval_means(cutoff, decay, groups), sgd(server_lr), local)


def interval_means(
    cutoff: int | None = 50,
    decay: float | None = None,
    groups: ArrayLike | None = None,
    shrink: float = 0.0,
) -> WeightRule:
    """The weight rule of FedAU: ω_i is the mean length of client i's participation intervals.

    With `shrink` each history begins with so many intervals of everybody's mean length so far, so
    that the first intervals of a client, which may be anything, do not decide alone.

    A group counts member-rounds: its interval grows by one a member and round, and when j members
    take part it closes j intervals that share that length. So ω estimates one over the group's
    mean rate, and a group of one is exactly Algorithm 2.

    >>> rule = interval_means(cutoff=2)
    >>> rule.weigh(rule.init(1), 5, np.array([0]))  # five rounds missed: two intervals of 2 closed
    array([2.])
    """
    whole = cutoff is None or (cutoff >= 1 and cutoff == int(cutoff))
    require(whole, "cutoff", cutoff, "a whole number from 1, or none")
    require(decay is None or 0 < decay <= 1, "decay", decay, "in (0, 1], or none")
    require(shrink >= 0, "shrink", shrink, "0 or more intervals")
    of = None if groups is None else group_numbers("groups", groups)
    sizes = None if of is None else np.bincount(of)
    keep = 1.0 if decay is None else 1.0 - decay

    def init(clients: int) -> State:
        if of is not None:
            require_one_each("groups", of, clients)
        histories = clients if sizes is None else len(sizes)
        return {
            "opened": np.zeros(histories, dtype=np.int32),  # round in which the interval began
            "rounds": np.zeros(histories),  # in closed intervals; Algorithm 2's M·ω
            "intervals": np.zeros(histories),  # closed; Algorithm 2's M
        } | ({"everybody": np.zeros(2)} if shrink else {})  # rounds and intervals of all of them

    def fold(state: State, round: int, rows: Rows) -> _Folded:
        """The sums with the intervals that absence has closed, and the rounds still open."""
        missed = np.maximum(round - state["opened"][rows], 0)
        members = np.int64(1) if sizes is None else sizes[rows]
        rounds, intervals = state["rounds"][rows], state["intervals"][rows]
        if cutoff is None:
            return _Folded(rounds, intervals, missed, members)
        closed = missed // cutoff
        faded = keep**closed
        # One closing after the other: 1 + keep + keep² + …
        more = members * (closed if keep == 1 else (1 - faded) / (1 - keep))
        rounds, intervals = rounds * faded + more * cutoff, intervals * faded + more
        return _Folded(rounds, intervals, missed - closed * cutoff, members)

    def weigh(state: State, round: int, rows: Rows) -> NDArray[np.float64]:
        now = fold(state, round, rows if of is None else of[rows])
        if shrink and state["everybody"][1]:
            rounds, intervals = state["everybody"].tolist()
            common = shrink * rounds / intervals
            drawn: NDArray[np.float64] = (now.rounds + common) / (now.intervals + shrink)
            return drawn
        # The first closing makes `intervals` 1 or more, and fading never takes it below.
        return np.where(now.intervals > 0, now.rounds / np.maximum(now.intervals, 1), 1.0)

    def observe(state: State, round: int, rows: Rows) -> State:
        took_part: NDArray[np.int64] | np.int64 = np.int64(1)
        if of is not None:
            rows, took_part = np.unique(of[rows], return_counts=True)
        now = fold(state, round, rows)
        # Members of one group may be observed in several calls a round: the first fades the past
        # and brings the interval's member-rounds, and each call brings its own closings.
        first = state["opened"][rows] <= round
        fade = np.where(first, keep, 1.0)
        length = np.where(first, (now.missed + 1) * now.members, 0)
        after = fade * now.rounds + length, fade * now.intervals + took_part
        if shrink:
            before = state["rounds"][rows], state["intervals"][rows]
            state["everybody"] += [
                (new - old).sum() for new, old in zip(after, before, strict=True)
            ]
        state["rounds"][rows], state["intervals"][rows] = after
        state["opened"][rows] = round + 1
        return state

    return WeightRule(init, weigh, observe, alone=not shrink)


class _Folded(NamedTuple):
    rounds: NDArray[np.float64]
    intervals: NDArray[np.float64]
    missed: NDArray[np.int64]
    members: NDArray[np.int64] | np.int64
