"""What a client keeps between rounds, in Flower's `Context.state`.

Flower stores the state as soon as the client has answered, whether or not the answer ever arrives.
So new vectors are pending first, and take the place of the committed ones only when a later order
says that the server accepted the round that they belong to.
"""

from typing import cast

import torch
from flwr.app import ConfigRecord, RecordDict
from torch import Tensor

from turnout.flower.messages import Ticket
from turnout.flower.packing import record, tensors
from turnout.parts.local import Tensors

_COMMITTED, _PENDING, _ROUNDS = "turnout.committed", "turnout.pending", "turnout.rounds"
NEVER = -1


def recall(
    state: RecordDict, ticket: Ticket, names: tuple[str, ...], like: Tensor
) -> Tensors | None:
    """The vectors [1, d] as the server believes them to be; None if this client has lost them.

    Commits what is pending if the server accepted it, and drops it otherwise.
    """
    if not names:
        return {}
    rounds = state.config_records.get(_ROUNDS, ConfigRecord())
    current = rounds.get("generation", 0) == ticket.generation
    if ticket.accepted == NEVER:
        _forget(state, ticket.generation)
        return {name: torch.zeros_like(like)[None] for name in names}
    if current and rounds.get("pending", NEVER) == ticket.accepted:
        state[_COMMITTED] = state.array_records[_PENDING]
        rounds["committed"] = ticket.accepted
    elif not current or rounds.get("committed", NEVER) != ticket.accepted:
        return None
    _drop_pending(state, rounds)
    committed = tensors(state.array_records[_COMMITTED])
    return {name: committed[name][None] for name in names}


def pend(state: RecordDict, ticket: Ticket, vectors: Tensors) -> None:
    """Keep `vectors` [1, d] until the server says whether it has accepted this round."""
    state[_PENDING] = record({name: vector[0] for name, vector in vectors.items()})
    cast(ConfigRecord, state[_ROUNDS])["pending"] = ticket.round


def _forget(state: RecordDict, generation: int) -> None:
    state.pop(_COMMITTED, None)
    rounds = ConfigRecord({"generation": generation})
    state[_ROUNDS] = rounds
    _drop_pending(state, rounds)


def _drop_pending(state: RecordDict, rounds: ConfigRecord) -> None:
    state.pop(_PENDING, None)
    rounds["pending"] = NEVER
