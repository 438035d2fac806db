"""From stretches of time in which clients were there to the rounds in which they were."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from turnout.audit.history import History, from_pairs
from turnout.errors import require

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]

_LENGTHS = (86400.0, 3600.0, 1800.0, 600.0, 300.0, 60.0, 30.0, 10.0, 1.0)
_ENOUGH = 500
_MOST = 10_000_000


class Sessions(NamedTuple):
    """Client `client[k]` is there from start[k] up to but not including end[k], in seconds."""

    client: Rows
    start: Floats
    end: Floats


def default_round(times: Floats) -> float:
    """The longest usual round of which at least 500 fit into the log; none finer than its times.

    >>> default_round(np.array([0.0, 17.0, 6 * 86400.0]))
    600.0
    >>> default_round(np.array([0.0, 3600.0, 6 * 86400.0]))  # by the hour
    3600.0
    """
    span = float(times.max() - times.min())
    grain = _grain(times)
    long = (each for each in _LENGTHS if span / each >= _ENOUGH or grain % each == 0)
    return next(long, _LENGTHS[-1])


def _grain(times: Floats) -> float:
    """The longest step in whole seconds that all times keep to, counted from the first."""
    whole = times.astype(np.int64)
    if not bool((whole == times).all()):
        return 0.5
    found = np.gcd.reduce(whole - whole.min())
    return float(found) if found else 0.5


def begin(first: float, span: float, round_s: float) -> float:
    """When round 0 starts: at 0 for a log that counts from there, else just before its first entry."""
    return 0.0 if 0 <= first < span else float(np.floor(first / round_s) * round_s)


def history_of_sessions(
    sessions: Sessions,
    clients: int,
    names: Sequence[str] | None,
    round_s: float | None,
    mends: Mapping[str, int],
) -> History:
    """A client takes part in a round if it is there when the round starts."""
    kept = sessions.end > sessions.start
    counts = {**mends, "empty intervals left out": int((~kept).sum())}
    client, start, end = sessions.client[kept], sessions.start[kept], sessions.end[kept]
    require(len(client) > 0, "the number of intervals that are not empty", 0, "at least 1")
    counts["intervals out of order"] = int(
        ((client[1:] == client[:-1]) & (start[1:] < start[:-1])).sum()
    )
    listed = np.zeros(clients, dtype=bool)
    listed[sessions.client] = True
    order = np.lexsort((start, client))
    client, start, end = client[order], start[order], end[order]
    first, last = float(start.min()), float(end.max())
    length = default_round(np.concatenate([start, end])) if round_s is None else round_s
    zero = begin(first, last - first, length)
    rounds = int(np.ceil((last - zero) / length))
    require(
        rounds <= _MOST, "the number of rounds", rounds, f"at most {_MOST:,}: take longer rounds"
    )
    counts |= _repeats(client, start, end)
    opens = np.ceil((start - zero) / length).astype(np.int64)
    closes = np.minimum(np.ceil((end - zero) / length).astype(np.int64), rounds)
    # Merged in whole rounds, so that overlaps cost nothing: a running maximum within each client.
    reach = np.maximum.accumulate(client * (rounds + 1) + closes) - client * (rounds + 1)
    fresh = np.concatenate([[True], client[1:] != client[:-1]])
    opens = np.where(fresh, opens, np.maximum(opens, np.concatenate([[0], reach[:-1]])))
    lengths = np.maximum(closes - opens, 0)
    place = np.arange(int(lengths.sum())) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    counts["intervals between two round starts, which no round sees"] = int((lengths == 0).sum())
    return from_pairs(
        np.repeat(client, lengths),
        np.repeat(opens, lengths) + place,
        clients,
        rounds,
        names=names,
        listed=listed,
        round_s=length,
        mends={what: count for what, count in counts.items() if count},
    )


def _repeats(client: Rows, start: Floats, end: Floats) -> dict[str, int]:
    """Duplicates and overlaps among intervals sorted by client and start."""
    same = client[1:] == client[:-1]
    twice = same & (start[1:] == start[:-1]) & (end[1:] == end[:-1])
    # Ranks make the running maximum exact: seconds plus a large offset would lose digits.
    order = np.argsort(end, kind="stable")
    rank = np.empty(len(end), dtype=np.int64)
    rank[order] = np.arange(len(end))
    reach = np.maximum.accumulate(client * len(end) + rank) - client * len(end)
    over = same & (start[1:] < end[order[reach[:-1]]]) & ~twice
    return {
        "duplicate intervals": int(twice.sum()),
        "overlapping intervals merged": int(over.sum()),
    }


def sessions_of_events(
    client: Rows, time: Floats, on: NDArray[np.bool_]
) -> tuple[Sessions, dict[str, int]]:
    """Intervals from "it came" and "it left": an open end is the log's, an open start its first.

    >>> found, mends = sessions_of_events(np.array([0, 0, 0]), np.array([1.0, 5.0, 9.0]),
    ...     np.array([True, False, True]))
    >>> found.start.tolist(), found.end.tolist()
    ([1.0, 9.0], [5.0, 9.0])
    """
    disorder = int(((client[1:] == client[:-1]) & (time[1:] < time[:-1])).sum())
    order = np.lexsort((time, client))
    client, time, on = client[order], time[order], on[order]
    fresh = np.concatenate([[True], client[1:] != client[:-1]])
    turns = fresh | np.concatenate([[True], on[1:] != on[:-1]])
    first, last = float(time.min()), float(time.max())
    repeated = int((~turns).sum())
    client, time, on, fresh = client[turns], time[turns], on[turns], fresh[turns]
    leaves = np.concatenate([time[1:], [last]])
    final = np.concatenate([client[1:] != client[:-1], [True]])
    leaves[final] = last
    early = fresh & ~on
    sessions = Sessions(
        np.concatenate([client[on], client[early]]),
        np.concatenate([time[on], np.full(int(early.sum()), first)]),
        np.concatenate([leaves[on], time[early]]),
    )
    return sessions, {
        "events out of order": disorder,
        "events that repeat a client's state": repeated,
        "clients there from the log's start": int(early.sum()),
        "clients there until the log's end": int((on & final).sum()),
    }
