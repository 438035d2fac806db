"""Clients that stay for a while and stay away for a while: a two-state Markov chain each."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from turnout.participation.coin import leading, toss
from turnout.participation.inputs import Chances, chances, positive, whole
from turnout.participation.process import Attendance, Participation, State


class Transitions(NamedTuple):
    """Chances of being there in the next round."""

    join: NDArray[np.float64]
    """P(off→on)"""
    stay: NDArray[np.float64]
    """P(on→on), which is 1 − P(on→off)"""


def transitions(p: NDArray[np.float64] | float, on: float = 0.05) -> Transitions:
    """The chain whose stationary share is p, as in the experiments of FedAU.

    P(off→on) = on and P(on→off) = on·(1/p − 1). Where the latter exceeds 1 it becomes 1 and the
    former is divided by it, which keeps their ratio and hence the share.

    >>> [round(float(x), 4) for x in transitions(0.01)]
    [0.0101, 0.0]
    """
    with np.errstate(divide="ignore", over="ignore"):  # p = 0: never joins, always leaves
        leave = on * (1 / np.asarray(p, dtype=np.float64) - 1)
    return Transitions(join=on / np.maximum(1, leave), stay=1 - np.minimum(1, leave))


def markov(
    p: Chances, clients: int | None = None, on: float = 0.05, seed: int = 0
) -> Participation:
    """Client n comes p_n of the time, in spells: P(off→on) = `on` where p_n allows it.

    >>> markov([0.0, 1.0]).mask(3).tolist()
    [[False, True], [False, True], [False, True]]
    """
    p = chances("p", p, clients)
    on = positive("on", on, most=1)
    seed = whole("seed", seed)
    start = leading(p)
    join, stay = map(leading, transitions(p, on))
    more = stay - join  # modulo 2**16, so that join + more·here picks one of the two
    del stay

    def init() -> State:
        return {"here": toss(start, p.item, seed, "markov", 0)}

    def step(state: State, round: int) -> tuple[Attendance, State]:
        here = state["here"]

        def chance(client: int) -> float:  # recomputed for the few that need it: 16 bytes saved
            then = transitions(p.item(client), on)
            return float(then.stay if here[client] else then.join)

        # The draws of a round decide who is there in it: those of round 0 were the start's.
        then = toss(join + more * here, chance, seed, "markov", round + 1)
        rows = np.flatnonzero(here)
        return Attendance(rows, rows), {"here": then}

    return Participation("markov", len(p), init, step, rates=p)
