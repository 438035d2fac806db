"""Read a participation log, whatever its form: `read_history(path)`.

CSV or Parquet with the columns

- `round` and `client`, and perhaps `delivered`: pairs, as turnout and its Flower strategy write;
- `client`, a start and an end: intervals of availability;
- `client`, a time and a state (on/off, joined/left, 1/0): events;
- `client` and a time: visits, each of which is a participation in the round it falls into;

or a mask as .npy, FLASH's `state_traces.json`, or an availability trace of FedScale.
"""

import os
from dataclasses import replace
from pathlib import Path

import numpy as np

from turnout.audit.columns import CLIENT, Columns, read_columns
from turnout.audit.fedscale import read_fedscale
from turnout.audit.flash import read_flash
from turnout.audit.history import History, from_mask, from_pairs
from turnout.audit.sessions import (
    Sessions,
    begin,
    default_round,
    history_of_sessions,
    sessions_of_events,
)
from turnout.audit.values import Moments, Roster, flags, moments, roster, whole
from turnout.errors import InputError, require
from turnout.participation.export import load

_ROUND = ("round", "server_round", "round_id")
_START = ("available_from_s", "available_from", "start", "start_s", "from", "begin")
_END = ("available_until_s", "available_until", "end", "end_s", "until", "stop")
_TIME = ("time", "timestamp", "time_s", "at", "ts", "date")
_STATE = ("event", "state", "status", "available", "online")
_YES, _NO = {"1", "1.0", "true", "yes"}, {"0", "0.0", "false", "no"}
_ON = _YES | {"on", "up", "in", "join", "joined", "online", "connect", "connected", "enter"}
_ON |= {"start", "started", "available", "active", "arrive", "arrived", "check_in", "checkin"}
_OFF = _NO | {"off", "down", "out", "leave", "left", "offline", "disconnect", "disconnected"}
_OFF |= {"end", "ended", "stop", "stopped", "unavailable", "inactive", "exit"}
_OFF |= {"depart", "departed", "check_out", "checkout"}


def read_history(
    path: str | Path, round_s: float | None = None, clients: int | None = None
) -> History:
    """The log as a `History`.

    `round_s` is the length of a round in a log of times, `clients` how many there are where some
    never show up in it.
    """
    file = Path(path)
    if round_s is not None:
        require(0 < round_s < float("inf"), "round length", round_s, "a number of seconds above 0")
    if clients is not None:
        require(clients >= 1, "clients", clients, "at least 1")
    if not os.path.isfile(file):  # false for a name too long, too
        raise InputError(f"{file} cannot be read: there is no such file")
    if file.suffix == ".npy":
        history = from_mask(load(file).mask())
        require(
            clients is None or clients == history.clients, "clients", clients, f"{history.clients}"
        )
        return history
    foreign = {".json": read_flash, ".pkl": read_fedscale, ".pickle": read_fedscale}.get(
        file.suffix
    )
    if foreign is None and file.read_bytes()[:1] == b"\x80":  # how every binary pickle begins
        foreign = read_fedscale
    if foreign is not None:
        sessions, names, mends = foreign(file)
        right = f"at least {len(names)}, the clients in {file}"
        require(clients is None or clients >= len(names), "clients", clients, right)
        return history_of_sessions(sessions, clients or len(names), names, round_s, mends)
    return _table(read_columns(file), round_s, clients)


def _table(columns: Columns, round_s: float | None, clients: int | None) -> History:
    client = columns.find(CLIENT)
    found = {name: columns.find(names) for name, names in _KINDS.items()}
    round, start, end, time = (found[name] for name in ("round", "start", "end", "time"))
    if client is not None and round is not None:
        return _pairs(columns, client, round, clients)
    if client is not None and start is not None and end is not None:
        return _intervals(columns, client, start, end, round_s, clients)
    if client is not None and time is not None:
        return _events(columns, client, time, found["state"], round_s, clients)
    raise InputError(
        f"the columns of {columns.path} are {', '.join(columns.values)}; there must be client and "
        "round, or client, start and end, or client and time (and perhaps state)"
    )


_KINDS = {"round": _ROUND, "start": _START, "end": _END, "time": _TIME, "state": _STATE}


def _pairs(columns: Columns, client: str, round: str, clients: int | None) -> History:
    who, when = roster(columns, client, clients), whole(columns, round)
    columns.check(round, when < 2**31 - 1, "less than 2 147 483 647")
    base = 1 if when.min() == 1 and "rounds" not in columns.notes else 0
    note = columns.notes.get("rounds", "")
    rounds = max(int(when.max()) + 1, int(note) if note.isdecimal() else 0) - base
    when = when - base
    came = np.ones(len(when), dtype=bool)
    if "delivered" in columns.values:
        came = flags(columns, "delivered", _YES, _NO, "1 (it arrived) or 0")
    key = when * who.clients + who.row
    disorder = int((np.diff(when) < 0).sum())
    asked = from_pairs(who.row, when, who.clients, rounds)
    history = from_pairs(
        who.row[came],
        when[came],
        who.clients,
        rounds,
        asked=asked.counts if "delivered" in columns.values else None,
        names=who.names or _called(columns, client, who),
        listed=asked.counts > 0,
    )
    mends = {
        "entries out of order": disorder,
        "duplicate entries": len(key) - len(asked.round),
        "rounds counted from 1, now from 0": base,
    }
    return replace(history, mends={what: count for what, count in mends.items() if count})


def _called(columns: Columns, client: str, who: Roster) -> list[str] | None:
    """Names that stand beside the clients' numbers, as in the log of a live federation."""
    column = columns.find(("name",))
    if column is None or column == client:
        return None
    words = columns.column(column, gaps=True)
    first = np.unique(who.row, return_index=True)[1]
    names = [str(n) for n in range(who.clients)]
    for place in first.tolist():
        names[who.row[place]] = str(words[place].as_py() or who.row[place])
    return names if len(set(names)) == who.clients else None


def _time_mends(*read: Moments) -> dict[str, int]:
    return {
        "times without a zone, read as UTC": sum(each.without_zone for each in read),
        "times of other zones, brought to UTC": sum(each.zones for each in read),
        "columns of milliseconds, brought to seconds": sum(each.milliseconds for each in read),
    }


def _intervals(
    columns: Columns, client: str, start: str, end: str, round_s: float | None, clients: int | None
) -> History:
    who = roster(columns, client, clients)
    opens, closes = moments(columns, start), moments(columns, end, gaps=True)
    still = np.isnan(closes.seconds)
    last = np.concatenate([opens.seconds, closes.seconds[~still]]).max()
    until = np.where(still, last, closes.seconds)
    columns.check(end, until >= opens.seconds, f"not before the {start} beside it")
    sessions = Sessions(who.row, opens.seconds, until)
    mends = _time_mends(opens, closes)
    mends["intervals without an end, taken to last until the log's"] = int(still.sum())
    return history_of_sessions(sessions, who.clients, who.names, round_s, mends)


def _events(
    columns: Columns,
    client: str,
    time: str,
    state: str | None,
    round_s: float | None,
    clients: int | None,
) -> History:
    who, when = roster(columns, client, clients), moments(columns, time)
    mends = _time_mends(when)
    if state is not None:
        on = flags(columns, state, _ON, _OFF, "a word such as on or off, joined or left, 1 or 0")
        sessions, more = sessions_of_events(who.row, when.seconds, on)
        return history_of_sessions(sessions, who.clients, who.names, round_s, mends | more)
    first, last = float(when.seconds.min()), float(when.seconds.max())
    length = default_round(when.seconds) if round_s is None else round_s
    round = np.floor((when.seconds - begin(first, last - first, length)) / length).astype(np.int64)
    rounds = int(round.max()) + 1
    require(rounds < 2**31, "the number of rounds", rounds, "less: take longer rounds")
    history = from_pairs(who.row, round, who.clients, rounds, names=who.names, round_s=length)
    mends |= {
        "entries out of order": int((np.diff(when.seconds) < 0).sum()),
        "visits of one client in one round, counted once": len(round) - len(history.round),
    }
    return replace(history, mends={what: count for what, count in mends.items() if count})
