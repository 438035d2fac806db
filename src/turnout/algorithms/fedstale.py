"""FedStale: how far to trust stale updates, between none (FedAvg's way) and all (FedVARP's).

Rodio & Neglia, "FedStale: Leveraging Stale Client Updates in Federated Learning", ECAI 2024.

The paper divides by known probabilities p_i. Nobody knows them here, so the weights are FedAU's
running estimates of 1/p_i, unless `p` is given.
"""

from typing import Literal

from numpy.typing import ArrayLike

from turnout.algorithm import Algorithm, WeightRule, per_delivered
from turnout.algorithms.fedau import interval_means
from turnout.algorithms.recipe import recipe
from turnout.errors import choose, require
from turnout.parts.local import Local
from turnout.parts.memory import table
from turnout.parts.transform import sgd
from turnout.parts.weight import inverse, uniform


@recipe
def fedstale(
    beta: float = 0.5,
    weights: Literal["estimated", "delivered"] = "estimated",
    cutoff: int | None = 50,
    rates: ArrayLike | None = None,
    server_lr: float = 1.0,
    local: Local = Local(),
) -> Algorithm:
    """FedStale: x += η·(β·h̄ + Σ_{i∈S} a_i·(Δ_i − β·h_i)), with a_i ≈ 1/(N·p_i).

    `weights` says where a_i comes from: "estimated" takes FedAU's intervals, cut at `cutoff`;
    "delivered" is 1/|S|, as if all came equally often, and β = 1 is then FedVARP. `rates` are the
    p_n, where they are known.
    """
    require(0 <= beta <= 1, "beta", beta, "in [0, 1]")
    choose("weights", weights, ("estimated", "delivered"))
    rule = uniform(per_delivered) if weights == "delivered" else _inverse(cutoff, rates)
    return Algorithm("fedstale", rule, sgd(server_lr), local, memory=table(), beta=beta)


def _inverse(cutoff: int | None, rates: ArrayLike | None) -> WeightRule:
    return interval_means(cutoff) if rates is None else inverse(rates)
