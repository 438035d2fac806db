"""Generalized FedAvg: every P rounds, go further along what those rounds have moved.

Wang & Ji, "A Unified Analysis of Federated Learning with Arbitrary Client Participation",
NeurIPS 2022.
"""

from dataclasses import replace

import torch
from torch import Tensor

from turnout.algorithm import Algorithm, ServerTransform, State
from turnout.algorithms.fedavg import fedavg
from turnout.algorithms.recipe import recipe
from turnout.errors import require
from turnout.parts.transform import chain


@recipe
def amplified(period: int = 10, factor: float = 2.0, inner: Algorithm | None = None) -> Algorithm:
    """Generalized FedAvg around any other algorithm (FedAvg unless `inner` is given).

    After every `period` rounds (P), x += (η − 1)·u, with `factor` η and u the sum of the steps of
    those rounds. η = 1 changes nothing.
    """
    base = fedavg() if inner is None else inner
    return replace(base, transform=chain(base.transform, amplify(period, factor)))


def amplify(period: int, factor: float) -> ServerTransform:
    """The server transform of Generalized FedAvg."""
    require(period >= 1 and period == int(period), "period", period, "a whole number from 1")
    require(factor > 0, "factor", factor, "positive")

    def init(x: Tensor) -> State:
        return {"window": torch.zeros_like(x), "rounds": 0}

    def apply(step: Tensor, x: Tensor, state: State) -> tuple[Tensor, State]:
        window, rounds = state["window"] + step, state["rounds"] + 1
        if rounds < period:
            return step, {"window": window, "rounds": rounds}
        return step + (factor - 1) * window, {"window": torch.zeros_like(x), "rounds": 0}

    return ServerTransform(init, apply)
