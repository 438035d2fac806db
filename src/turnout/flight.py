"""What clients were sent who have not finished yet, where a round of the simulator is an arrival.

A live client has its copy of the model; here it is kept for it until it is trained from, which happens
when its update arrives: one that is going to be lost need not be trained at all.
"""

import numpy as np
import torch
from torch import Tensor

from turnout.algorithm import Algorithm, Rows, State
from turnout.errors import InputError
from turnout.round import Broadcast


def require_own_pace(algorithm: Algorithm, process: str) -> None:
    """Refuse a method whose clients go by more than the model that each was sent."""
    for part, why in (
        (
            algorithm.local.rule.shared,
            "its clients share vectors, as the server had them in a round",
        ),
        (algorithm.own_start, "it keeps itself from where each client goes on"),
        (algorithm.selection, "it chooses whom to ask in a round"),
        (algorithm.assistance, "the server trains in a round"),
    ):
        if part:
            raise InputError(
                f"participation is {process}, in which updates arrive one by one, and {algorithm.name} "
                f"does not go with that: {why}; take another process, or a method such as fedbuff"
            )


def nothing_sent(clients: int, x: Tensor) -> State:
    return {
        "x": x.new_zeros(clients, len(x)),
        "round": np.zeros(clients, dtype=np.int64),
        "lr": np.zeros(clients),
        "weights": np.zeros(clients),
        "shares": np.zeros(clients),
    }


def depart(flight: State, rows: Rows, broadcast: Broadcast) -> None:
    """These clients begin with what is in this broadcast."""
    flight["x"][torch.from_numpy(rows)] = broadcast.x
    flight["round"][rows], flight["lr"][rows] = broadcast.round, broadcast.lr
    flight["weights"][rows], flight["shares"][rows] = broadcast.weights, broadcast.shares


def arrive(flight: State, rows: Rows, broadcast: Broadcast) -> Broadcast:
    """What the client that has finished began with; in shape like `broadcast`, which is another's."""
    assert len(rows) <= 1, "a round is an arrival"
    return broadcast._replace(
        x=flight["x"][torch.from_numpy(rows)],
        round=int(flight["round"][rows].sum()),
        lr=float(flight["lr"][rows].sum()),
        weights=flight["weights"][rows],
        shares=flight["shares"][rows],
    )
