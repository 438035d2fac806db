"""FLASH's `state_traces.json`: what phones reported, from which availability follows.

A device is a table with `messages`: lines of a time, a tab, and a state (battery_charged_on,
screen_off, wifi, 4G, 85.0 %, …). A phone can train while it is locked, charging, and on Wi-Fi: the
rule of that project, which leaves it to the user; `screen_off` here counts as locked, too.
"""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from turnout.audit.sessions import Sessions
from turnout.errors import InputError, require

# state → (what it is about, what it says of it)
_STATES = {
    "battery_charged_on": ("charging", True),
    "battery_charged_off": ("charging", False),
    "wifi": ("wifi", True),
    "screen_lock": ("locked", True),
    "screen_unlock": ("locked", False),
    "screen_off": ("off", True),
    "screen_on": ("off", False),
    **dict.fromkeys(("2g", "3g", "4g", "5g", "unknown"), ("wifi", False)),
}
_OTHER = ("battery_low", "battery_okay", "phone_on", "phone_off")


def read_flash(path: Path) -> tuple[Sessions, list[str], dict[str, int]]:
    """Sessions, the devices' names, and what was mended."""
    try:
        table = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"{path} cannot be read as JSON: {error}") from error
    right = "a table of devices, each with its messages"
    good = isinstance(table, dict) and bool(table) and all(_is_device(d) for d in table.values())
    require(good, f"the content of {path}", type(table).__name__, right)
    client: list[int] = []
    start: list[float] = []
    end: list[float] = []
    mends = {"messages that are no time and state": 0, "messages out of order": 0}
    for row, device in enumerate(table.values()):
        for begins, ends in _device(device["messages"], mends):
            client.append(row)
            start.append(begins)
            end.append(ends)
    sessions = Sessions(np.array(client, dtype=np.int64), np.array(start), np.array(end))
    return sessions, list(table), mends


def _is_device(device: Any) -> bool:
    return isinstance(device, dict) and isinstance(device.get("messages"), str | list)


def _device(messages: str | list[str], mends: dict[str, int]) -> list[tuple[float, float]]:
    text = messages if isinstance(messages, str) else "\n".join(map(str, messages))
    events: list[tuple[float, str]] = []
    for line in filter(None, (line.strip() for line in text.replace("\x00", "").splitlines())):
        stamp, _, state = line.partition("\t")
        state = state.strip().lower()
        known = state in _STATES or state in _OTHER or state.endswith("%")
        try:
            when = datetime.strptime(stamp.strip(), "%Y-%m-%d %H:%M:%S").replace(tzinfo=UTC)
        except ValueError:
            known = False
        if not known:
            mends["messages that are no time and state"] += 1
            continue
        moment = when.timestamp()
        mends["messages out of order"] += bool(events) and moment < events[-1][0]
        events.append((moment, state))
    events.sort(key=lambda event: event[0])
    now = {"charging": False, "wifi": False, "locked": False, "off": False}
    found: list[tuple[float, float]] = []
    since: float | None = None
    for moment, state in events:
        if state in _STATES:
            what, value = _STATES[state]
            now[what] = value
        ready = now["charging"] and now["wifi"] and (now["locked"] or now["off"])
        if ready and since is None:
            since = moment
        elif not ready and since is not None:
            found.append((since, moment))
            since = None
    if since is not None:
        found.append((since, events[-1][0]))
    return found
