"""What a client keeps between rounds, in Flower's `Context.state`.

Flower stores the state as soon as the client has answered, whether or not the answer ever arrives.
So new values are pending first, and take the place of the committed ones only when a later order
says that the server accepted the round that they belong to.
"""

from typing import NamedTuple

from flwr.app import ConfigRecord, RecordDict

from turnout.flower.packing import record, tensors
from turnout.parts.local import Tensors

NEVER = -1


class Word(NamedTuple):
    """What an order says about the past."""

    round: int
    """The client round that is asked for."""
    accepted: int
    """The last client round whose upload the server accepted; −1 for none."""
    generation: int = 0
    """How often everything kept has been started anew."""


def recall(state: RecordDict, space: str, word: Word, fresh: Tensors) -> Tensors | None:
    """The values as the server believes them to be, `fresh` at first; None if they are lost.

    Commits what is pending if the server accepted it, and drops it otherwise. `space` keeps values
    of several kinds apart.
    """
    if not fresh:
        return {}
    committed, pending, rounds = (f"{space}.{part}" for part in ("committed", "pending", "rounds"))
    notes = state.config_records.get(rounds, ConfigRecord())
    current = notes.get("generation", 0) == word.generation
    if word.accepted == NEVER:
        state.pop(committed, None)
        state.pop(pending, None)
        state[rounds] = ConfigRecord({"generation": word.generation, "pending": NEVER})
        return fresh
    if current and notes.get("pending", NEVER) == word.accepted:
        state[committed] = state.array_records[pending]
        notes["committed"] = word.accepted
    elif not current or notes.get("committed", NEVER) != word.accepted:
        return None
    state.pop(pending, None)
    notes["pending"] = NEVER
    values = tensors(state.array_records[committed])
    return {name: values[name] for name in fresh}


def pend(state: RecordDict, space: str, word: Word, values: Tensors) -> None:
    """Keep `values` until the server says whether it has accepted this round."""
    if not values:
        return
    rounds = f"{space}.rounds"
    if rounds not in state:
        state[rounds] = ConfigRecord({"generation": word.generation})
    state[f"{space}.pending"] = record(values)
    state.config_records[rounds]["pending"] = word.round
