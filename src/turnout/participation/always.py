"""Everybody comes in every round."""

import numpy as np

from turnout.participation.inputs import whole
from turnout.participation.process import Attendance, Participation, State


def always(clients: int) -> Participation:
    """Every client in every round.

    >>> always(3).mask(2).tolist()
    [[True, True, True], [True, True, True]]
    """
    clients = whole("clients", clients, least=1)

    def step(state: State, round: int) -> tuple[Attendance, State]:
        everyone = np.arange(clients)
        return Attendance(everyone, everyone), state

    return Participation("always", clients, dict, step, np.ones(clients), period=1)
