"""Centralised SGD on everything that all clients hold: the ceiling of every comparison."""

from dataclasses import replace

from turnout.algorithm import Algorithm
from turnout.algorithms.fedavg import fedavg
from turnout.algorithms.recipe import recipe
from turnout.algorithms.safari import assistance


@recipe
def centralised(steps: int | None = 5, batch_size: int | None = 64, lr: float = 0.1) -> Algorithm:
    """Every round is `steps` mini-batches of SGD on all data, as if it lay in one place."""
    ceiling = replace(assistance(0.0, lr, steps, batch_size), data="everything")
    return replace(fedavg(), assistance=ceiling)
