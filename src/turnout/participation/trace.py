"""Replay of a log of who was available when."""

import math
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from turnout.errors import require
from turnout.participation.inputs import positive, whole
from turnout.participation.process import Attendance, Participation, State
from turnout.participation.table import Path, Table, read_table

_CLIENT, _FROM, _UNTIL = "client", "available_from_s", "available_until_s"


class Intervals(NamedTuple):
    """Half-open intervals [start, end) in seconds, sorted by client and then by start."""

    client: NDArray[np.int64]
    start: NDArray[np.float64]
    end: NDArray[np.float64]


def trace(
    path: Path,
    round_s: float,
    clients: int | None = None,
    period_s: float | None = None,
    whole_round: bool = False,
) -> Participation:
    """Clients come as in a CSV file of client, available_from_s, available_until_s.

    Round t starts at t·`round_s` seconds, and asks the clients that are available then: from their
    interval's start, up to but not including its end. With `whole_round`, the update arrives only
    from those who remain available until the round's end; the others computed in vain.

    The trace repeats after `period_s` (by default, at the end of its last interval), and what it
    has beyond that is cut off; a whole number of days keeps the time of day. Clients without an
    interval never come; `clients` says how many there are where the last ones are among them.
    """
    round_s = positive("round_s", round_s)
    table = read_table(path, [_CLIENT, _FROM, _UNTIL])
    intervals = _checked(table)
    require(len(intervals.client) > 0, f"the number of intervals in {path}", 0, "at least 1")
    number = int(intervals.client.max()) + 1
    if clients is not None:
        number = whole("clients", clients, least=number)
    last = float(intervals.end.max())
    period = last if period_s is None else positive("period_s", period_s)
    client, start, end = around(joined(intervals), period)

    def step(state: State, round: int) -> tuple[Attendance, State]:
        now = math.fmod(round * round_s, period)
        here = (start <= now) & (now < end)
        cohort = client[here]
        if not whole_round:
            return Attendance(cohort, cohort), state
        return Attendance(cohort, client[here & (now + round_s <= end)]), state

    rates = _rates(Intervals(client, start, end), number, round_s, period, whole_round)
    return Participation("trace", number, dict, step, rates=rates)


def _checked(table: Table) -> Intervals:
    client = table.rows(_CLIENT)
    start, end = table.columns[_FROM], table.columns[_UNTIL]
    table.require(start >= 0, _FROM, "at least 0")
    table.require(end > start, _UNTIL, f"later than the line's {_FROM}")
    order = np.lexsort((start, client))
    client, start, end = client[order], start[order], end[order]
    overlaps = (client[1:] == client[:-1]) & (start[1:] < end[:-1])
    for k in np.flatnonzero(overlaps)[:1].tolist():
        other = int(table.lines[order[k]])
        right = f"at least {end[k]:.15g}, where the interval of line {other} ends"
        right += f": those of one client (here {client[k]}) may not overlap"
        require(False, table.field(_FROM, int(order[k + 1])), float(start[k + 1]), right)
    return Intervals(client, start, end)


def joined(intervals: Intervals) -> Intervals:
    """The intervals with those of one client made one where they touch.

    >>> log = Intervals(np.array([0, 0, 0]), np.array([0.0, 5.0, 9.0]), np.array([5.0, 8.0, 10.0]))
    >>> joined(log).end.tolist()
    [8.0, 10.0]
    """
    client, start, end = intervals
    apart = (client[1:] != client[:-1]) | (start[1:] > end[:-1])
    first = np.concatenate([[True], apart])
    last = np.concatenate([apart, [True]])
    return Intervals(client[first], start[first], end[last])


def around(intervals: Intervals, period: float) -> Intervals:
    """The intervals on a circle of `period` seconds, as they stand over [0, period).

    A client that is there at the end and again at the start is there without a break: its last
    interval then ends beyond the period, with a copy that starts before 0. One that is always
    there has an interval without an end.
    """
    client, start, end = intervals
    inside = start < period
    client, start, end = client[inside], start[inside], np.minimum(end[inside], period)
    heads, tails = np.flatnonzero(start == 0), np.flatnonzero(end == period)
    _, of_heads, of_tails = np.intersect1d(client[heads], client[tails], True, True)
    heads, tails = heads[of_heads], tails[of_tails]
    alone = heads == tails
    ends, starts = end[heads] + period, start[tails] - period
    end[tails] = np.where(alone, np.inf, ends)
    start[heads] = np.where(alone, 0.0, starts)
    return Intervals(client, start, end)


def _rates(
    intervals: Intervals, clients: int, round_s: float, period: float, whole_round: bool
) -> NDArray[np.float64]:
    """Shares of round starts within the intervals, by counting.

    t·L modulo P visits every multiple of the greatest common divisor of L and P equally often.
    """
    a, b = Fraction(round_s), Fraction(period)
    common = Fraction(
        math.gcd(a.numerator * b.denominator, b.numerator * a.denominator),
        a.denominator * b.denominator,
    )
    places, unit = float(b / common), float(common)
    low = np.ceil(np.maximum(intervals.start, 0) / unit)
    # start ≤ now < end, or start ≤ now ≤ end − L
    latest = np.floor((intervals.end - round_s) / unit) + 1
    high = latest if whole_round else np.ceil(intervals.end / unit)
    count = np.maximum(np.minimum(high, places) - low, 0)
    return np.bincount(intervals.client, weights=count, minlength=clients) / places
