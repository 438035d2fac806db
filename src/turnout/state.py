"""What the server knows between rounds and within one; `turnout.round` makes and changes it."""

from dataclasses import dataclass, field
from math import isfinite
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from turnout.algorithm import State, Tally
from turnout.parts.local import Tensors


@dataclass
class ServerState:
    """All that the server knows, as tensors, arrays and numbers: what a checkpoint holds."""

    x: Tensor
    round: int
    """Rounds closed, of either kind."""
    client_round: int
    """Client rounds closed: the clock of participation history."""
    weight: State
    memory: State
    transform: State
    means: Tensors
    """Σ q_n c_n over the population of each vector c_n that clients keep and share."""
    shares: NDArray[np.float64] | None
    """[N]: N·q_n, or None for equal shares."""
    seen: NDArray[np.bool_]
    """[N]: has this client ever delivered?"""
    seen_count: int
    """How many have; kept beside the table so that a round need not walk through it."""
    total: Tensor
    """Σ ω_i·(Δ_i − β·h_i) since the last time that the model moved."""
    delivered: int = 0
    """How many updates are in `total`."""
    contributed: NDArray[np.bool_] | None = None
    """[N], with a gate that counts each client once: whose update is in `total`."""
    starts: Tensor | None = None
    """[N, d], where clients go on from their own model: the one that ended the round in which each
    last delivered, or the first of all."""
    arrived: NDArray[np.bool_] | None = None
    """[N], likewise: who has delivered in the open round, and will go on from how it ends."""
    changes: Tensors = field(default_factory=dict)
    """Sums of changes of what clients keep since the means last moved."""
    assistance: State = field(default_factory=dict)
    """What the share of the server's own update goes by."""
    guide: Tensor | None = None
    """Where the server trains beside clients: its own update Δ_0 in the open round."""
    trust: Tensor | None = None
    """[1], with a judge only: what the updates in `total` count for, together."""
    selection: State = field(default_factory=dict)
    """What the selection has seen."""
    version: int = 0
    """How often the model has moved by what clients sent."""
    sent: NDArray[np.int64] | None = None
    """[N], where lateness counts: which version each client was sent."""


def tally_of(state: ServerState) -> Tally:
    """What the server has counted in the open round."""
    trust = 0.0 if state.trust is None else float(state.trust)
    return Tally(len(state.seen), state.delivered, state.seen_count, trust)


def unsound(state: ServerState) -> str | None:
    """Which of the server's vectors is no longer finite after a round; None if all are.

    A model can be sound while what will move it later is not: a gate or a divisor of 0 holds it
    still, and so does amplification until its round comes. Tables with a row a client are not walked
    through: what enters a row enters a sum or a mean of these, too.

    >>> from dataclasses import replace
    >>> from turnout.algorithms import fedau
    >>> from turnout.round import start
    >>> state = start(fedau(), torch.zeros(2), clients=3)
    >>> unsound(state), unsound(replace(state, total=torch.tensor([0.0, torch.nan])))
    (None, 'the sum of updates')
    """
    for what, node in (
        ("the model", state.x),
        ("the sum of updates", state.total),
        ("memory", state.memory.get("mean")),
        ("the server transform", state.transform),
        ("the mean of what clients keep", state.means),
    ):
        if not _sound(node):
            return what
    return None


def _sound(node: Any) -> bool:
    if isinstance(node, dict):
        return all(map(_sound, node.values()))
    if not isinstance(node, Tensor):
        return True
    # One pass, and mostly the only one; a sum can overflow though each number is finite.
    return isfinite(float(node.sum())) or bool(torch.isfinite(node).all())
