"""FedAWE: clients go on from their own stale model, and what they missed echoes in their step.

Xiang, Ioannidis, Yeh, Joe-Wong, Su, "Efficient Federated Learning against Heterogeneous and
Non-stationary Client Unavailability", NeurIPS 2024.

In the paper a client keeps x_i, the average that it was handed at the end of the last round in
which it took part. It steps from there, G_i = x_i − (where it got to), and reports
x_i − η_g·(t − τ_i)·G_i, with τ_i that round (−1 at first). The average of the reports is the new
model, and those who took part are handed it. Here the server remembers what it handed to whom and
sends that when the client next comes: the same numbers, without a second message a round, and a
client that loses its disk has lost nothing.
"""

import numpy as np
from numpy.typing import NDArray

from turnout.algorithm import Algorithm, Rows, State, WeightRule, per_delivered
from turnout.algorithms.recipe import recipe
from turnout.errors import require
from turnout.parts.local import Local
from turnout.parts.transform import sgd


@recipe
def fedawe(
    echo: float = 1.0, cap: int | None = None, server_lr: float = 1.0, local: Local = Local()
) -> Algorithm:
    """FedAWE: x ← mean over S of x_i + η_g·(t − τ_i)·Δ_i, with x_i the model of client i's last round.

    `echo` is η_g; `cap` bounds t − τ_i, so that one who comes after long does not throw the model.
    """
    rule = rounds_since(echo, cap)
    return Algorithm("fedawe", rule, sgd(server_lr), local, own_start=True)


def rounds_since(factor: float = 1.0, cap: int | None = None) -> WeightRule:
    """ω_i = factor · (rounds since client i last took part, this one included)."""
    require(factor > 0, "echo", factor, "positive")
    require(cap is None or cap >= 1, "cap", cap, "a whole number from 1, or none")

    def init(clients: int) -> State:
        return {"opened": np.zeros(clients, dtype=np.int32)}  # the round after τ_i

    def weigh(state: State, round: int, rows: Rows) -> NDArray[np.float64]:
        since: NDArray[np.float64] = np.maximum(round - state["opened"][rows] + 1.0, 1.0)
        return factor * (since if cap is None else np.minimum(since, cap))

    def observe(state: State, round: int, rows: Rows) -> State:
        state["opened"][rows] = round + 1
        return state

    return WeightRule(init, weigh, observe, per_delivered)
