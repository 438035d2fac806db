"""What a method asks for beyond the model: memory at the server and the clients, and what is sent."""

from dataclasses import fields
from typing import Any, NamedTuple

import numpy as np
from torch import Tensor

from turnout.algorithm import Algorithm, Table
from turnout.round import MEMORY, keeps
from turnout.state import ServerState

_EVERYBODYS = ("x", "total", "seen", "shares")
"""Fields of the server's state that plain averaging has, too."""


class Costs(NamedTuple):
    """In bytes."""

    server: int
    """At the server, beyond the model, one running sum and the roster."""
    client: int
    """At each client, between rounds."""
    down: int
    """To a client in each round that it is asked."""
    up: int
    """From a client in each round that it delivers."""


def costs(algorithm: Algorithm, state: ServerState) -> Costs:
    """What `algorithm` costs with a model and a population as in this state.

    >>> import torch
    >>> from turnout import algorithms
    >>> from turnout.round import start
    >>> for method in (algorithms.fedavg(), algorithms.fedvarp(), algorithms.mifa(memory="client")):
    ...     print(costs(method, start(method, torch.zeros(1000), clients=50)))
    Costs(server=0, client=0, down=4000, up=4000)
    Costs(server=208000, client=0, down=4000, up=4000)
    Costs(server=8000, client=4000, down=4000, up=8000)
    """
    vector, number, kept = _bytes(state.x), state.x.element_size(), keeps(algorithm)
    sent = [name for name in kept if name == MEMORY or name in algorithm.local.rule.shared]
    held = [getattr(state, field.name) for field in fields(state) if field.name not in _EVERYBODYS]
    return Costs(
        server=_bytes(held),
        client=vector * len(kept) + number * len(algorithm.local.rule.numbers),
        down=vector * (1 + len(state.means)),
        up=vector * (1 + len(sent)),
    )


def _bytes(node: Any) -> int:
    if isinstance(node, Tensor | np.ndarray | Table):
        return node.nbytes
    if isinstance(node, dict):
        return sum(map(_bytes, node.values()))
    return sum(map(_bytes, node)) if isinstance(node, list | tuple) else 0
