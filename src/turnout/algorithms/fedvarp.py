"""FedVARP and ClusterFedVARP: variance reduction by a server table of past updates.

Jhunjhunwala et al., "FedVARP: Tackling the Variance Due to Partial Client Participation in
Federated Learning", UAI 2022.
"""

from numpy.typing import ArrayLike

from turnout.algorithm import Algorithm, per_delivered
from turnout.algorithms.recipe import recipe
from turnout.parts.local import Local
from turnout.parts.memory import clusters as cluster_table
from turnout.parts.memory import table
from turnout.parts.transform import sgd
from turnout.parts.weight import uniform


@recipe
def fedvarp(
    clusters: ArrayLike | None = None, server_lr: float = 1.0, local: Local = Local()
) -> Algorithm:
    """FedVARP: x += η·(h̄ + (1/|S|) Σ_{i∈S} (Δ_i − h_i)), with h̄ from before the overwrite.

    With `clusters` (a cluster number for each client) the table has a row a cluster.
    """
    memory = table() if clusters is None else cluster_table(clusters)
    return Algorithm(
        "fedvarp", uniform(per_delivered), sgd(server_lr), local, memory=memory, beta=1.0
    )
