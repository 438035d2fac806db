"""FedKeep: FedAU's weights on what is new in each update, with memories that clients keep.

This project's own method; docs/methods/fedkeep.md derives it. FedAU corrects who comes how often,
FedVARP and MIFA remember what those who are away would say; the one leaves the noise of who came,
the others need N·d numbers at the server and no secure aggregation. Put together, with h_i held by
client i, the server keeps one vector more than FedAvg's and needs sums only.
"""

from turnout.algorithm import Algorithm
from turnout.algorithms.fedau import interval_means
from turnout.algorithms.recipe import recipe
from turnout.errors import require
from turnout.parts.local import Local
from turnout.parts.memory import client_held
from turnout.parts.transform import sgd


@recipe
def fedkeep(
    beta: float = 0.5,
    cutoff: int | None = 50,
    decay: float | None = None,
    shrink: float = 0.0,
    server_lr: float = 1.0,
    local: Local = Local(),
) -> Algorithm:
    """FedKeep: x += η·(β·h̄ + (1/N) Σ_{i∈S} ω_i·(Δ_i − β·h_i)), with h_i kept by client i.

    ω_i is the mean of client i's participation intervals, cut at `cutoff` and forgotten by `decay`
    as in FedAU; h_i is the last update that client i delivered, and h̄ the mean of all. β = 0 is
    FedAU. `shrink` draws the weights of clients that have come only a few times towards everybody's
    mean interval: it counts as so many intervals of each client's own.
    """
    require(0 <= beta <= 1, "beta", beta, "in [0, 1]")
    rule = interval_means(cutoff, decay, shrink=shrink)
    return Algorithm("fedkeep", rule, sgd(server_lr), local, memory=client_held(), beta=beta)
