"""Clients that come in one stretch of each cycle, each at a time of its own."""

import numpy as np

from turnout.draws import generator
from turnout.participation.inputs import Chances, chances, whole
from turnout.participation.process import Attendance, Participation, State


def cyclic(
    p: Chances, clients: int | None = None, period: int = 100, seed: int = 0
) -> Participation:
    """Client n comes in max(1, round(period·p_n)) rounds on end of each cycle, as in FedAU.

    Everyone comes at least once a cycle, also where p_n = 0: `excluded` is for those who never do.

    >>> cyclic([0.0, 0.5, 1.0], period=4).mask(8).sum(axis=0).tolist()
    [2, 4, 8]
    """
    p = chances("p", p, clients)
    period = whole("period", period, least=1)
    small = np.min_scalar_type(2 * period)  # 2 bytes a client for periods up to 32 767
    length = np.maximum(1, np.rint(period * p)).astype(small)
    offset = generator(whole("seed", seed), "cyclic").integers(period, size=len(p)).astype(small)

    def step(state: State, round: int) -> tuple[Attendance, State]:
        place = offset + small.type(round % period)  # from 0 to 2·period − 2: a lap too many
        lapped = place - small.type(period)  # huge, by wrapping, where there was none
        here = np.flatnonzero((place < length) | (lapped < length))
        return Attendance(here, here), state

    return Participation("cyclic", len(p), dict, step, rates=length / period, period=period)
