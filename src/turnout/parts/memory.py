"""Where past updates live: a table at the server, one row a cluster, or with the clients.

Every store keeps the mean over the population beside the vectors, so that a round costs what its
delivered clients cost and not what the population would.
"""

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from turnout.algorithm import Divisor, Memory, Rows, State, Zeros, in_memory, per_client
from turnout.parts.grouping import group_numbers, require_one_each


def begin(memory: Memory, clients: int, x: Tensor, zeros: Zeros = in_memory) -> State:
    """The state of a memory that has seen nothing, with tables that `zeros` makes."""
    return {name: zeros(clients, x) for name in memory.tables} | memory.init(clients, x)


def table(divisor: Divisor = per_client) -> Memory:
    """One vector a client at the server: N·d numbers."""

    def init(clients: int, x: Tensor) -> State:
        return {"mean": torch.zeros_like(x), "change": torch.zeros_like(x)}

    def recall(state: State, rows: Rows) -> Tensor:
        held: Tensor = state["table"]
        return held[torch.from_numpy(rows)]

    def store(state: State, rows: Rows, updates: Tensor) -> State:
        index = torch.from_numpy(rows)
        held = state["table"]
        # A client delivers at most once a round, so its row is never read again before `settle`.
        state["change"] += (updates - held[index]).sum(0)
        held[index] = updates
        return state

    def settle(state: State) -> State:
        state["mean"] += state["change"].div_(len(state["table"]))
        state["change"].zero_()
        return state

    return Memory(init, store, settle, recall, divisor, tables=("table",), sums=("change",))


def clusters(assignment: ArrayLike, divisor: Divisor = per_client) -> Memory:
    """One vector a cluster at the server (ClusterFedVARP): C·d numbers.

    A cluster's vector becomes the mean of the updates that its members delivered in the round.
    """
    of = group_numbers("clusters", assignment)
    count = int(of.max()) + 1
    members = torch.from_numpy(np.bincount(of, minlength=count))

    def init(clients: int, x: Tensor) -> State:
        require_one_each("clusters", of, clients)
        return {
            "vectors": torch.zeros(count, len(x), dtype=x.dtype, device=x.device),
            "mean": torch.zeros_like(x),
            "sums": torch.zeros(count, len(x), dtype=x.dtype, device=x.device),
            "delivered": torch.zeros(count, 1, dtype=x.dtype, device=x.device),
        }

    def recall(state: State, rows: Rows) -> Tensor:
        held: Tensor = state["vectors"]
        return held[torch.from_numpy(of[rows])]

    def store(state: State, rows: Rows, updates: Tensor) -> State:
        index = torch.from_numpy(of[rows])
        state["sums"].index_add_(0, index, updates)
        state["delivered"].index_add_(0, index, torch.ones_like(updates[:, :1]))
        return state

    def settle(state: State) -> State:
        active = state["delivered"][:, 0] > 0
        fresh = state["sums"][active] / state["delivered"][active]
        held = state["vectors"]
        share = members[active.cpu()].to(held) / len(of)
        state["mean"] += share @ (fresh - held[active])
        held[active] = fresh
        state["sums"].zero_()
        state["delivered"].zero_()
        return state

    return Memory(init, store, settle, recall, divisor, sums=("sums", "delivered"))


def client_held(divisor: Divisor = per_client) -> Memory:
    """Each client keeps its own vector; the server keeps only the mean: d numbers.

    Clients upload changes of their vectors, and the server needs nothing but their sum: secure
    aggregation still applies.
    """

    def init(clients: int, x: Tensor) -> State:
        return {"mean": torch.zeros_like(x), "change": torch.zeros_like(x), "clients": clients}

    def store(state: State, rows: Rows, changes: Tensor) -> State:
        state["change"] += changes.sum(0)
        return state

    def settle(state: State) -> State:
        state["mean"] += state["change"].div_(state["clients"])
        state["change"].zero_()
        return state

    return Memory(init, store, settle, divisor=divisor, sums=("change",))
