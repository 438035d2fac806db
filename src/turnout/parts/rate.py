"""How often each client has come, as a running mean that forgets."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from turnout.algorithm import Rows, State, WeightRule, per_client
from turnout.errors import require

Floats = NDArray[np.float64]


class RunningRate(NamedTuple):
    """r ← (1 − decay)·r + decay·[it came], in each round; lazily, so that absence costs nothing.

    It begins at `first` of N: what is supposed of somebody of whom nothing is known.

    >>> rate = RunningRate(decay=0.5, first=1)
    >>> state = rate.observe(rate.init(2), 0, np.array([0]))
    >>> rate.at(state, 2, np.array([0, 1]))  # 0 came in round 0, and nobody in round 1
    array([0.375, 0.125])
    """

    decay: float
    first: int

    def init(self, clients: int) -> State:
        # The rate as it stood at the beginning of a round, and which round that was.
        rate = np.full(clients, min(1.0, self.first / clients))
        return {"rate": rate, "opened": np.zeros(clients, dtype=np.int32)}

    def at(self, state: State, round: int, rows: Rows) -> Floats:
        """The rates as round `round` begins."""
        missed = np.maximum(round - state["opened"][rows], 0)
        now: Floats = state["rate"][rows] * (1 - self.decay) ** missed
        return now

    def observe(self, state: State, round: int, rows: Rows) -> State:
        """These clients came in this round."""
        state["rate"][rows] = (1 - self.decay) * self.at(state, round, rows) + self.decay
        state["opened"][rows] = round + 1
        return state


def inverse_rate(rate: RunningRate, floor: float) -> WeightRule:
    """ω = 1/r, with a rate below `floor` counting for that."""
    require(0 < rate.decay <= 1, "decay", rate.decay, "in (0, 1]")
    require(0 <= floor <= 1, "floor", floor, "in [0, 1]")

    def weigh(state: State, round: int, rows: Rows) -> Floats:
        with np.errstate(divide="ignore"):  # whoever trains with an infinite weight is told of it
            return 1 / np.maximum(rate.at(state, round, rows), floor)

    # A client by itself does not know how many there are, with which its rate begins.
    return WeightRule(rate.init, weigh, rate.observe, per_client, alone=False)
