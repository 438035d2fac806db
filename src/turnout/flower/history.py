"""A client's own participation history: its weight without the server's telling."""

import numpy as np
import torch
from flwr.app import Context

from turnout.algorithm import State, WeightRule
from turnout.errors import InputError
from turnout.flower import kept
from turnout.flower.messages import Ticket

_SPACE = "turnout.history"
_ALONE = np.zeros(1, dtype=np.int64)


def own_weight(rule: WeightRule, context: Context, ticket: Ticket) -> float:
    """ω by the rounds whose uploads the server has accepted; this round's is pending from now on.

    Where the rule needs more than a client's own history (known probabilities, groups, everybody's
    mean), ω is the server's. A client that has lost its history starts a new one.
    """
    if not rule.alone:
        return ticket.weight
    try:
        state = rule.init(1)
    except InputError:
        return ticket.weight
    fresh = {name: torch.from_numpy(value) for name, value in state.items()}
    found = kept.recall(context.state, _SPACE, ticket.history, fresh)
    if found is None:
        state = begin_at(state, slice(None), ticket.last + 1)
    else:
        state = {name: value.numpy() for name, value in found.items()}
    weight = float(rule.weigh(state, ticket.round, _ALONE)[0])
    after = rule.observe(state, ticket.round, _ALONE)
    values = {name: torch.from_numpy(value) for name, value in after.items()}
    kept.pend(context.state, _SPACE, ticket.history, values)
    return weight


def begin_at(state: State, rows: slice, round: int) -> State:
    """The history of these clients with its first interval beginning in this client round."""
    if "opened" in state:  # FedAU's name for that round; rules without history have none
        state["opened"][rows] = round
    return state
