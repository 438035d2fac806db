"""Server transforms: what the server makes of a direction before it moves the model."""

import torch
from torch import Tensor

from turnout.algorithm import Rows, ServerTransform, State
from turnout.errors import require


def chain(*transforms: ServerTransform) -> ServerTransform:
    """One transform after the other; each sees the step that the one before it returned."""

    def init(x: Tensor) -> State:
        return {str(j): transform.init(x) for j, transform in enumerate(transforms)}

    def apply(step: Tensor, x: Tensor, state: State) -> tuple[Tensor, State]:
        for j, transform in enumerate(transforms):
            step, state[str(j)] = transform.apply(step, x, state[str(j)])
        return step, state

    def forget(state: State) -> State:
        return {str(j): each.forget(state[str(j)]) for j, each in enumerate(transforms)}

    def observe(state: State, rows: Rows) -> State:
        return {str(j): each.observe(state[str(j)], rows) for j, each in enumerate(transforms)}

    return ServerTransform(init, apply, forget, observe)


def sgd(lr: float = 1.0) -> ServerTransform:
    """x moves by η_s times the direction."""
    require(lr > 0, "server_lr", lr, "positive")

    def apply(step: Tensor, x: Tensor, state: State) -> tuple[Tensor, State]:
        return step * lr, state

    return ServerTransform(lambda x: {}, apply)


def momentum(lr: float = 1.0, decay: float = 0.9) -> ServerTransform:
    """Heavy-ball momentum on directions (FedAvgM)."""
    require(lr > 0, "server_lr", lr, "positive")
    require(0 <= decay < 1, "server_momentum", decay, "in [0, 1)")

    def init(x: Tensor) -> State:
        return {"velocity": torch.zeros_like(x)}

    def apply(step: Tensor, x: Tensor, state: State) -> tuple[Tensor, State]:
        state["velocity"].mul_(decay).add_(step)
        return state["velocity"] * lr, state

    return ServerTransform(init, apply)
