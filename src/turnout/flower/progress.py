"""Everything that changes while a live federation runs, and what a checkpoint holds of it."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from turnout import round as protocol
from turnout.algorithm import Algorithm, State
from turnout.errors import InputError
from turnout.flower.history import begin_at
from turnout.flower.kept import NEVER
from turnout.parts.memory import begin as remembering
from turnout.state import ServerState


@dataclass
class Progress:
    """State at the server; what clients keep is with them."""

    server: ServerState
    presence: State
    """State of an injected participation process."""
    accepted: NDArray[np.int64]
    """[N]: the last client round whose upload was accepted, since `generation` began; or −1."""
    last: NDArray[np.int64]
    """[N]: the last client round whose upload was ever accepted; or −1."""
    delivered: NDArray[np.int64]
    """[N]: how often each client's update was taken in."""
    generation: int = 0
    """How often what clients keep has been started anew, because one had lost its part."""


def begin(
    algorithm: Algorithm,
    x: Tensor,
    clients: int,
    shares: NDArray[np.float64] | None,
    presence: State,
) -> Progress:
    return Progress(
        server=protocol.start(algorithm, x, clients, shares),
        presence=presence,
        accepted=np.full(clients, NEVER, dtype=np.int64),
        last=np.full(clients, NEVER, dtype=np.int64),
        delivered=np.zeros(clients, dtype=np.int64),
    )


def restore(tree: dict[str, Any]) -> Progress:
    """The progress that a checkpoint's tree holds."""
    return Progress(**{**tree, "server": ServerState(**tree["server"])})


def forget(algorithm: Algorithm, progress: Progress) -> Progress:
    """Start what clients keep anew, for all of them, with the means that the server holds of it.

    A client that has lost its h_i (or c_i) leaves its part in the mean, where nobody can ever take
    it out again. All at zero is where every one of these methods may start, and is exact.
    """
    server = progress.server
    memory = algorithm.memory
    fresh = (
        remembering(memory, len(server.seen), server.x)
        if memory is not None and memory.recall is None
        else server.memory
    )
    means = {name: torch.zeros_like(mean) for name, mean in server.means.items()}
    changes = {name: torch.zeros_like(total) for name, total in server.changes.items()}
    transform = algorithm.transform.forget(server.transform)
    return replace(
        progress,
        server=replace(server, memory=fresh, means=means, changes=changes, transform=transform),
        accepted=np.full_like(progress.accepted, NEVER),
        generation=progress.generation + 1,
    )


def grow(algorithm: Algorithm, progress: Progress, clients: int) -> Progress:
    """The same with room for more clients: N grows, and with it every mean over the population.

    A newcomer has missed nothing: its history begins with the open round.
    """
    old, count = progress.server, len(progress.server.seen)
    if clients == count:
        return progress
    if old.shares is not None:
        raise InputError("shares are given; a population that grows can only have equal ones")
    fresh = protocol.start(algorithm, old.x, clients)
    weight = begin_at(_grown(old.weight, fresh.weight), slice(count, None), old.client_round)
    memory = _grown(old.memory, fresh.memory)
    if "mean" in memory:
        memory["mean"] = old.memory["mean"] * (count / clients)
    server = replace(
        old,
        weight=weight,
        memory=memory,
        selection=begin_at(
            _grown(old.selection, fresh.selection), slice(count, None), old.client_round
        ),
        means={name: mean * (count / clients) for name, mean in old.means.items()},
        seen=_padded(old.seen, clients, False),
        contributed=None if old.contributed is None else _padded(old.contributed, clients, False),
        starts=None if old.starts is None else _grown_starts(old.starts, old.x, clients),
        sent=None if old.sent is None else _padded(old.sent, clients, old.version),
        arrived=None if old.arrived is None else _padded(old.arrived, clients, False),
    )
    return replace(
        progress,
        server=server,
        accepted=_padded(progress.accepted, clients, NEVER),
        last=_padded(progress.last, clients, NEVER),
        delivered=_padded(progress.delivered, clients, 0),
    )


def _padded(values: NDArray[Any], size: int, value: Any) -> NDArray[Any]:
    return np.concatenate([values, np.full(size - len(values), value, dtype=values.dtype)])


def _grown_starts(starts: Tensor, x: Tensor, clients: int) -> Tensor:
    """A newcomer starts from the model as it is."""
    return torch.cat([starts, x.repeat(clients - len(starts), 1)])


def _grown(old: State, fresh: State) -> State:
    """Old values where shapes agree, in the first rows of what is longer, and fresh numbers."""
    out: State = {}
    for name, value in fresh.items():
        before = old[name]
        if not isinstance(value, np.ndarray | Tensor):
            out[name] = value  # such as the number of clients that a store divides by
            continue
        if value.shape == before.shape:
            out[name] = before
            continue
        value[: len(before)] = before
        out[name] = value
    return out
