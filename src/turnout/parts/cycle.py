"""How many rounds a cycle of participation has, found while it goes on.

Amplification wants the smallest P such that P rounds on end are nearly alike, whenever they begin: that
is when the divergence of averages over P rounds, δ̃(P) in Generalized FedAvg's paper, is small. If
rounds were independent, the variance of such averages would fall as 1/P; what it is beside that is

    ρ(P) = P·Var(average of P rounds) / Var(one round) = 1 + 2 Σ_{k<P} (1 − k/P)·c_k / c_0

with c_k the covariance of presence k rounds apart: 1 for independent rounds, more where clients stay
for spells, and 0 where all P rounds on end have the same clients equally often. Presence of N
clients is projected on 64 numbers, by a sign a client and number that is a hash of the client: a cycle
is a cycle in any projection, and what is kept does not grow with N.
"""

import numpy as np
from numpy.typing import NDArray

from turnout.algorithm import Rows, State

WIDTH = 64
SURE = 0.35
"""A cycle must make averages so much steadier than independent rounds would."""
CYCLES = 6
"""So many must have been seen, and `longest` rounds: what comes again soon may be a part of what
comes again later, such as the turns of a group that itself takes turns."""
_CLOSE = 0.05


def begin(longest: int) -> State:
    """Nothing seen yet; cycles of less than `longest` rounds will be."""
    return {
        "now": np.zeros(WIDTH, dtype=np.int32),  # the open round
        "past": np.zeros((longest, WIDTH), dtype=np.int32),  # the last rounds, one after the other
        "sum": np.zeros(WIDTH),
        "products": np.zeros(longest),  # of rounds k apart, k = 0, 1, …
        "rounds": 0,
    }


def note(state: State, rows: Rows) -> State:
    """These clients took part in the open round."""
    state["now"] += signs(rows).sum(0, dtype=np.int32)
    return state


def turn(state: State) -> State:
    """The open round is over."""
    past, longest = state["past"], len(state["past"])
    past[state["rounds"] % longest] = state["now"]
    state["sum"] += state["now"]
    back = (state["rounds"] - np.arange(longest)) % longest
    # What has not been yet is zero, and adds nothing.
    state["products"] += past[back] @ state["now"].astype(np.float64)
    state["now"][:] = 0
    state["rounds"] += 1
    return state


def steadiness(state: State) -> NDArray[np.float64]:
    """ρ(1), ρ(2), … as far as it can be told yet; nothing if participation never changes."""
    rounds = state["rounds"]
    most = min(len(state["products"]), rounds // CYCLES)
    lags = np.arange(most)
    mean = state["sum"] / max(rounds, 1)
    covariance = state["products"][:most] / (rounds - lags) - mean @ mean
    if most < 2 or covariance[0] <= 1e-9 * max(float(mean @ mean), 1.0):
        return np.zeros(0)
    near = np.concatenate([covariance[1:] / covariance[0], [0.0]])
    # The sums of c_k and of k·c_k for k < P, with P = 1 + lags.
    ones = np.concatenate([[0.0], np.cumsum(near)[:-1]])
    weighted = np.concatenate([[0.0], np.cumsum((lags + 1) * near)[:-1]])
    found: NDArray[np.float64] = 1 + 2 * (ones - weighted / (lags + 1))
    return found


def period(state: State) -> int:
    """The rounds of a cycle; 0 while none is to be seen.

    >>> state = begin(longest=12)
    >>> for t in range(40):  # three clients in turn
    ...     state = turn(note(state, np.array([t % 3])))
    >>> period(state)
    3
    """
    rho = steadiness(state)
    if len(rho) < 3 or state["rounds"] < len(state["products"]):
        return 0
    best = float(rho[1:].min())
    if best > SURE:
        return 0
    # Multiples of a cycle are cycles, and next to one it is nearly as steady.
    after = np.append(rho[1:], -np.inf)  # at the end one cannot know
    before = np.insert(rho[:-1], 0, np.inf)
    good = (rho <= best + _CLOSE) & (rho <= before) & (rho <= after)
    return int(np.flatnonzero(good)[0]) + 1 if good.any() else 0


def signs(rows: Rows) -> NDArray[np.int8]:
    """[C, 64] of −1 and 1: the bits of a hash of each client's number (splitmix64)."""
    with np.errstate(over="ignore"):
        z = (rows.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z ^= z >> np.uint64(31)
    bits = np.unpackbits(z[:, None].view(np.uint8), axis=1)
    return 2 * bits.astype(np.int8) - 1
