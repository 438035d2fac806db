"""m of N clients each round, every set of m equally likely."""

import numpy as np

from turnout.draws import generator
from turnout.participation.inputs import whole
from turnout.participation.process import Attendance, Participation, State


def uniform(clients: int, per_round: int, seed: int = 0) -> Participation:
    """A fixed number of clients each round, drawn uniformly and anew.

    >>> [len(attendance.delivered) for attendance in uniform(10, 4).rounds(3)]
    [4, 4, 4]
    """
    clients = whole("clients", clients, least=1)
    per_round = whole("per_round", per_round, least=1, most=clients)
    seed = whole("seed", seed)

    def step(state: State, round: int) -> tuple[Attendance, State]:
        draws = generator(seed, "uniform", round)
        cohort = np.sort(draws.choice(clients, per_round, replace=False, shuffle=False))
        return Attendance(cohort, cohort), state

    return Participation(
        "uniform",
        clients,
        dict,
        step,
        rates=np.full(clients, per_round / clients),
        among=lambda rows: uniform(len(rows), per_round, seed),
    )
