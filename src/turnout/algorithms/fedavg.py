"""FedAvg, the two ways that FedAU's paper compares: divide by those who came, or by all.

McMahan et al., "Communication-Efficient Learning of Deep Networks from Decentralized Data",
AISTATS 2017. With unequal participation neither minimises f: see FedAU, Theorem 1.
"""

from turnout.algorithm import Algorithm, per_client, per_delivered
from turnout.algorithms.recipe import recipe
from turnout.parts.local import Local
from turnout.parts.transform import sgd
from turnout.parts.weight import uniform


@recipe
def fedavg(server_lr: float = 1.0, local: Local = Local()) -> Algorithm:
    """Average participating: x += (η/|S|) Σ_{i∈S} Δ_i."""
    return Algorithm("fedavg", uniform(per_delivered), sgd(server_lr), local)


@recipe
def average_all(server_lr: float = 1.0, local: Local = Local()) -> Algorithm:
    """Average all: x += (η/N) Σ_{i∈S} Δ_i, an absent client counting as no update."""
    return Algorithm("average_all", uniform(per_client), sgd(server_lr), local)
