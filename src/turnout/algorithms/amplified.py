"""Generalized FedAvg: every P rounds, go further along what those rounds have moved.

Wang & Ji, "A Unified Analysis of Federated Learning with Arbitrary Client Participation",
NeurIPS 2022.
"""

from dataclasses import replace

import torch
from torch import Tensor

from turnout.algorithm import Algorithm, Rows, ServerTransform, State
from turnout.algorithms.fedavg import fedavg
from turnout.algorithms.recipe import recipe
from turnout.errors import require
from turnout.parts import cycle
from turnout.parts.transform import chain


@recipe
def amplified(
    period: int | None = 10,
    factor: float = 2.0,
    inner: Algorithm | None = None,
    longest: int = 200,
) -> Algorithm:
    """Generalized FedAvg around any other algorithm (FedAvg unless `inner` is given).

    After every `period` rounds (P), x += (η − 1)·u, with `factor` η and u the sum of the steps of
    those rounds. η = 1 changes nothing. Without a period P is found by who comes: cycles of less than
    `longest` rounds, once they have been seen a few times; while there are none, nothing is amplified.
    """
    base = fedavg() if inner is None else inner
    found = amplify_found(factor, longest) if period is None else amplify(period, factor)
    return replace(base, transform=chain(base.transform, found))


def amplify(period: int, factor: float) -> ServerTransform:
    """The server transform of Generalized FedAvg."""
    require(
        period >= 1 and period == int(period), "period", period, "a whole number from 1, or none"
    )
    require(factor > 0, "factor", factor, "positive")

    def init(x: Tensor) -> State:
        return {"window": torch.zeros_like(x), "rounds": 0}

    def apply(step: Tensor, x: Tensor, state: State) -> tuple[Tensor, State]:
        window, rounds = state["window"] + step, state["rounds"] + 1
        if rounds < period:
            return step, {"window": window, "rounds": rounds}
        return step + (factor - 1) * window, {"window": torch.zeros_like(x), "rounds": 0}

    return ServerTransform(init, apply)


def amplify_found(factor: float, longest: int) -> ServerTransform:
    """The same with a period that is found on the way, anew at the end of each window."""
    require(factor > 0, "factor", factor, "positive")
    whole = 3 <= longest <= 100_000 and longest == int(longest)
    require(whole, "longest", longest, "a whole number of rounds from 3 to 100000")

    def init(x: Tensor) -> State:
        return {
            "window": torch.zeros_like(x),
            "rounds": 0,
            "period": 0,
            "seen": cycle.begin(longest),
        }

    def apply(step: Tensor, x: Tensor, state: State) -> tuple[Tensor, State]:
        seen, period = cycle.turn(state["seen"]), state["period"]
        window, rounds = state["window"] + step, state["rounds"] + 1
        if period > 0 and rounds < period:
            return step, {"window": window, "rounds": rounds, "period": period, "seen": seen}
        fresh = {
            "window": torch.zeros_like(x),
            "rounds": 0,
            "period": cycle.period(seen),
            "seen": seen,
        }
        return (step + (factor - 1) * window if period else step), fresh

    def observe(state: State, rows: Rows) -> State:
        return {**state, "seen": cycle.note(state["seen"], rows)}

    return ServerTransform(init, apply, observe=observe)
