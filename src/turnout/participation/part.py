"""A process over a part of its population, and one that is a part of a larger population."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from turnout.participation.process import Attendance, Participation, Rows, State


def restrict(process: Participation, rows: Rows) -> Participation:
    """The process over these clients only, who become 0, 1, 2, …; `rows` are sorted.

    Where others' absence matters to those who remain (m of N), the process says what it is
    `among` them; otherwise the others' attendance is left out.

    >>> from turnout.participation.uniform import uniform
    >>> restrict(uniform(10, 3), np.array([2, 5, 7])).mask(1).tolist()
    [[True, True, True]]
    """
    if process.among is not None:
        return process.among(rows)

    def new(old: Rows) -> Rows:
        place = np.searchsorted(rows, old)
        found: NDArray[np.bool_] = rows[np.minimum(place, len(rows) - 1)] == old
        return place[found]

    def step(state: State, round: int) -> tuple[Attendance, State]:
        came, then = process.step(state, round)
        cohort = new(came.cohort)
        delivered = cohort if came.delivered is came.cohort else new(came.delivered)
        began = None if came.began is None else new(came.began)
        return Attendance(cohort, delivered, began), then

    rates = None if process.rates is None else process.rates[rows]
    return replace(process, clients=len(rows), step=step, rates=rates)


def embed(process: Participation, rows: Rows, clients: int) -> Participation:
    """The process as that of the sorted `rows` of a population whose other clients never come."""

    def step(state: State, round: int) -> tuple[Attendance, State]:
        came, then = process.step(state, round)
        cohort = rows[came.cohort]
        delivered = cohort if came.delivered is came.cohort else rows[came.delivered]
        began = None if came.began is None else rows[came.began]
        return Attendance(cohort, delivered, began), then

    rates = None
    if process.rates is not None:
        rates = np.zeros(clients)
        rates[rows] = process.rates
    return replace(process, clients=clients, step=step, rates=rates, among=None)


def own_purpose(wrapper: str, inner: Participation) -> str:
    """What a wrapper's draws are for: not the same as those of its like further inside.

    Whether the process within is Bernoulli or Markov makes no difference, so that worlds that
    differ in this alone lose the same updates and lack the same clients.
    """
    return f"{wrapper} {inner.name.count(wrapper)}"
