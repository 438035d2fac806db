"""Replay of a log of who worked from when to when: a round is an arrival."""

import numpy as np

from turnout.errors import require
from turnout.participation.inputs import whole
from turnout.participation.process import Attendance, Participation, Rows, State
from turnout.participation.table import Path, Table, read_table

_CLIENT, _START, _TOOK = "client", "started_s", "took_s"
_ROUNDING = 1e-6
"""A client that starts by so little of the time before it has finished starts as it finishes."""


def arrivals(path: Path, clients: int | None = None) -> Participation:
    """Clients work at their own pace, as in a CSV file of client, started_s, took_s.

    Each line is one local training: it starts from the model as it is at that moment, and its update
    arrives `took_s` later. Round t ends with the t-th arrival, so that each has one. After the last
    one the log starts anew. At the same instant arrivals come before starts, and lower numbers first.
    Clients that are not in the log never come; `clients` says how many there are where the last ones
    are among them.
    """
    table = read_table(path, [_CLIENT, _START, _TOOK])
    client, start, end = _checked(table)
    require(len(client) > 0, f"the number of lines in {path}", 0, "at least 1")
    number = int(client.max()) + 1
    if clients is not None:
        number = whole("clients", clients, least=number)
    arrives = np.lexsort((client, end))
    of, ends = client[arrives], end[arrives]
    # Who starts at the moment of an arrival starts from what it has left.
    opens = np.searchsorted(ends, start, side="right")
    starters = np.lexsort((client, opens))
    bounds = np.searchsorted(opens[starters], np.arange(len(of) + 1))

    def step(state: State, round: int) -> tuple[Attendance, State]:
        place = round % len(of)
        began: Rows = client[starters[bounds[place] : bounds[place + 1]]]
        came = of[place : place + 1].copy()
        return Attendance(came, came.copy(), began), state

    rates = np.bincount(of, minlength=number) / len(of)
    return Participation(
        "arrivals", number, dict, step, rates=rates, period=len(of), asynchronous=True
    )


def _checked(table: Table) -> tuple[Rows, np.ndarray, np.ndarray]:
    client = table.rows(_CLIENT)
    start, took = table.columns[_START], table.columns[_TOOK]
    table.require(start >= 0, _START, "at least 0")
    table.require(took > 0, _TOOK, "above 0")
    order = np.lexsort((start, client))
    client, start, end = client[order], start[order], (start + took)[order]
    early = (client[1:] == client[:-1]) & (start[1:] < end[:-1])
    much = start[1:] < end[:-1] - _ROUNDING * np.maximum(end[:-1], 1)
    for k in np.flatnonzero(early & much)[:1].tolist():
        other = int(table.lines[order[k]])
        right = f"at least {end[k]:.15g}, when client {client[k]} has done what line {other} says"
        require(False, table.field(_START, int(order[k + 1])), float(start[k + 1]), right)
    start[1:][early] = end[:-1][early]
    return client, start, end
