"""Each client tosses a coin of its own in each round."""

import numpy as np

from turnout.participation.coin import leading, toss
from turnout.participation.inputs import Chances, chances, whole
from turnout.participation.process import Attendance, Participation, State


def bernoulli(p: Chances, clients: int | None = None, seed: int = 0) -> Participation:
    """Client n comes with probability p_n, whatever the other rounds and clients.

    >>> bernoulli([0.0, 1.0]).mask(2).tolist()
    [[False, True], [False, True]]
    """
    p = chances("p", p, clients)
    seed = whole("seed", seed)
    bits = leading(p)

    def step(state: State, round: int) -> tuple[Attendance, State]:
        here = np.flatnonzero(toss(bits, p.item, seed, "bernoulli", round))
        return Attendance(here, here), state

    return Participation("bernoulli", len(p), dict, step, rates=p)
