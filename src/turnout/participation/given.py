"""A known past: attendance as a mask or a log has it."""

from os import PathLike

import numpy as np
from numpy.typing import ArrayLike

from turnout.errors import InputError
from turnout.participation.export import load
from turnout.participation.log import Log, from_mask, sized
from turnout.participation.process import Attendance, Participation, State


def given(
    mask: ArrayLike | Log | str | PathLike[str],
    repeat: bool = False,
    rounds: int | None = None,
    clients: int | None = None,
) -> Participation:
    """Attendance as in a [rounds, clients] table, a log, or a file of either.

    A file is .npy, or CSV or Parquet with the columns round and client. `rounds` and `clients` say
    how many there are where the last ones do not show up. With `repeat` it all starts anew after
    the last round; without, a round beyond it is refused.

    >>> given([[1, 0], [0, 1]], repeat=True).mask(3).astype(int).tolist()
    [[1, 0], [0, 1], [1, 0]]
    """
    if isinstance(mask, str | PathLike):
        log = load(mask)
    else:
        log = mask if isinstance(mask, Log) else from_mask(mask)
    log = sized(log, rounds, clients)
    bounds = np.searchsorted(log.round, np.arange(log.rounds + 1))
    all_arrived = bool(log.delivered.all())

    def step(state: State, round: int) -> tuple[Attendance, State]:
        if round >= log.rounds and not repeat:
            raise InputError(
                f"round {round} (the first is 0) lies beyond the given mask, which has "
                f"{log.rounds} rounds; ask for fewer, or let it repeat"
            )
        place = round % log.rounds
        rows = slice(bounds[place], bounds[place + 1])
        cohort = log.client[rows].copy()
        delivered = cohort if all_arrived else cohort[log.delivered[rows]]
        return Attendance(cohort, delivered), state

    rates = np.bincount(log.client, weights=log.delivered, minlength=log.clients) / log.rounds
    period = log.rounds if repeat else None
    return Participation("given", log.clients, dict, step, rates=rates, period=period)
