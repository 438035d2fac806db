"""Momentum and adaptive step sizes at the server, around any method: FedAvgM, FedAdam, FedYogi.

FedAvgM: Hsu, Qi, Brown, "Measuring the Effects of Non-Identical Data Distribution for Federated
Visual Classification", 2019. FedAdam and FedYogi: Reddi, Charles, Zaheer, Garrett, Rush, Konečný,
Kumar, McMahan, "Adaptive Federated Optimization", ICLR 2021, Algorithm 2.

The papers have averages of those who came. Here each goes around any other method, so that the
direction may as well be FedAU's. A round in which nobody came has the direction zero: momentum
goes on moving the model, and fades.
"""

from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor

from turnout.algorithm import Algorithm, ServerTransform, State
from turnout.algorithms.fedavg import fedavg
from turnout.algorithms.recipe import recipe
from turnout.errors import require
from turnout.parts.transform import chain, momentum


@recipe
def fedavgm(
    server_lr: float = 1.0, server_momentum: float = 0.9, inner: Algorithm | None = None
) -> Algorithm:
    """FedAvgM: v ← β·v + d, x += η·v, with d the direction of any other algorithm."""
    return _after(inner, momentum(server_lr, server_momentum))


@recipe
def fedadam(
    server_lr: float = 0.01,
    first: float = 0.9,
    second: float = 0.99,
    floor: float = 1e-3,
    inner: Algorithm | None = None,
) -> Algorithm:
    """FedAdam: x += η·m/(√v + τ), with m and v running means of directions and their squares."""

    def squares(v: Tensor, squared: Tensor) -> Tensor:
        return v.lerp(squared, 1 - second)

    return _after(inner, adaptive(squares, server_lr, first, second, floor))


@recipe
def fedyogi(
    server_lr: float = 0.01,
    first: float = 0.9,
    second: float = 0.99,
    floor: float = 1e-3,
    inner: Algorithm | None = None,
) -> Algorithm:
    """FedYogi: FedAdam whose v moves by (1 − β₂)·d² towards d², however far away that is."""

    def squares(v: Tensor, squared: Tensor) -> Tensor:
        return v - (1 - second) * squared * torch.sign(v - squared)

    return _after(inner, adaptive(squares, server_lr, first, second, floor))


def adaptive(
    squares: Callable[[Tensor, Tensor], Tensor],
    lr: float,
    first: float,
    second: float,
    floor: float,
) -> ServerTransform:
    """Algorithm 2 with `squares` for its line 14 (v, d²) → v; as there, no bias is corrected."""
    require(lr > 0, "server_lr", lr, "positive")
    require(0 <= first < 1, "first", first, "in [0, 1)")
    require(0 <= second < 1, "second", second, "in [0, 1)")
    require(floor > 0, "floor", floor, "positive")

    def init(x: Tensor) -> State:
        return {"mean": torch.zeros_like(x), "square": torch.full_like(x, floor**2)}

    def apply(step: Tensor, x: Tensor, state: State) -> tuple[Tensor, State]:
        mean = state["mean"].lerp(step, 1 - first)
        square = squares(state["square"], step.square())
        return lr * mean / (square.sqrt() + floor), {"mean": mean, "square": square}

    return ServerTransform(init, apply)


def _after(inner: Algorithm | None, transform: ServerTransform) -> Algorithm:
    base = fedavg() if inner is None else inner
    return replace(base, transform=chain(base.transform, transform))
