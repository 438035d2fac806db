"""FedProx: local steps that are pulled back towards the model that the client was sent.

Li, Sahu, Zaheer, Sanjabi, Talwalkar, Smith, "Federated Optimization in Heterogeneous Networks",
MLSys 2020.
"""

from dataclasses import replace

from turnout.algorithm import Algorithm
from turnout.algorithms.fedavg import fedavg
from turnout.algorithms.recipe import recipe
from turnout.parts.local import Local, proximal


@recipe
def fedprox(mu: float = 0.1, server_lr: float = 1.0, local: Local = Local()) -> Algorithm:
    """FedProx: clients descend F_i(y) + (μ/2)·‖y − x‖²; x += (η/|S|) Σ_{i∈S} Δ_i.

    For other ways to average, `local.mu` puts the same term into any method.
    """
    return fedavg(server_lr, replace(local, rule=proximal(mu, local.rule)))
