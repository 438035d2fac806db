"""Local training: how a client moves its copy of the model.

Engines compute gradients; a local rule moves parameters. It works on blocks [C, d], a row a
client, so the same few lines serve one client at a time or a whole cohort at once.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

import torch
from torch import Tensor

from turnout.errors import require

Tensors = dict[str, Tensor]
Rate = float | Tensor  # a step size for all, or [C, 1]: one a client


class Told(NamedTuple):
    """What the server tells the rule beside the model."""

    means: Tensors
    """Means over the population of the vectors that clients share."""
    round: int
    """The client round."""


class Ended(NamedTuple):
    """What a rule sees when a client's local steps are over."""

    update: Tensor  # [C, d]: how far the client has moved its copy
    lr: Rate
    steps: Tensor  # [C, 1]: local steps taken
    state: Tensors  # the rule's own, after the last of them


class LocalRule(NamedTuple):
    """A pair (begin, step), and `end` for rules that upload something else, or keep something.

    `kept` names vectors [d] that each client keeps between rounds, and `numbers` single numbers,
    all zero at first; `end` returns Δ_i, and the new values of what is kept. Of the vectors in
    `shared` the server keeps the mean over the population and broadcasts it: a client uploads the
    change of its vector, and a sum of changes is all that the server needs. The mean that is
    broadcast moves every `window` client rounds.
    A rule may work in place on the tensors it is given; it must return them.
    """

    begin: Callable[[Tensor, Tensors, Told], tuple[Tensor, Tensors]]
    """(x [C, d], kept rows, told) → (where the client starts, state of [C, …] tensors)"""
    step: Callable[[Tensor, Tensor, Rate, Tensors], tuple[Tensor, Tensors]]
    """(gradient, x, lr, state) → (x, state)"""
    end: Callable[[Ended, Tensors, Told], tuple[Tensor, Tensors]] = lambda ended, kept, told: (
        ended.update,
        kept,
    )
    """(ended, kept rows, told) → (Δ [C, d], kept rows)"""
    kept: tuple[str, ...] = ()
    shared: tuple[str, ...] = ()
    numbers: tuple[str, ...] = ()
    window: int = 1
    name: str = "local rule"

    def __repr__(self) -> str:
        return self.name  # and not the addresses of its functions: settings go into run directories


def sgd(momentum: float = 0.0, weight_decay: float = 0.0, clip: float | None = None) -> LocalRule:
    """Plain SGD; momentum starts at zero in each round, `clip` bounds each gradient's norm.

    >>> sgd(momentum=0.9)
    sgd(momentum=0.9)
    >>> x, state = sgd().begin(torch.ones(1, 2), {}, Told({}, 0))
    >>> sgd().step(torch.tensor([[1.0, 2.0]]), x, 0.5, state)[0]
    tensor([[0.5000, 0.0000]])
    """
    require(0 <= momentum < 1, "local.momentum", momentum, "in [0, 1)")
    require(weight_decay >= 0, "local.weight_decay", weight_decay, "0 or more")
    require(clip is None or clip > 0, "local.clip", clip, "positive, or none")

    def begin(x: Tensor, kept: Tensors, told: Told) -> tuple[Tensor, Tensors]:
        return x, {"velocity": torch.zeros_like(x)} if momentum else {}

    def step(gradient: Tensor, x: Tensor, lr: Rate, state: Tensors) -> tuple[Tensor, Tensors]:
        if clip is not None:
            norm = gradient.norm(dim=1, keepdim=True)
            gradient = gradient * (clip / norm.clamp(min=clip))
        if weight_decay:
            gradient = gradient.add(x, alpha=weight_decay)
        if momentum:
            gradient = state["velocity"].mul_(momentum).add_(gradient)
        if isinstance(lr, Tensor):
            return x.addcmul_(gradient, lr, value=-1), state
        return x.add_(gradient, alpha=-lr), state

    given = [f"{momentum=:g}"] if momentum else []
    given += [f"{weight_decay=:g}"] if weight_decay else []
    given += [f"{clip=:g}"] if clip is not None else []
    return LocalRule(begin, step, name=f"sgd({', '.join(given)})")


def proximal(mu: float, rule: LocalRule | None = None) -> LocalRule:
    """Adds the gradient of (μ/2)·‖x − x_t‖² to every step (FedProx)."""
    require(mu >= 0, "local.mu", mu, "0 or more")
    inner = rule or sgd()

    def begin(x: Tensor, kept: Tensors, told: Told) -> tuple[Tensor, Tensors]:
        anchor = x.clone()
        x, state = inner.begin(x, kept, told)
        return x, {"anchor": anchor, **state}

    def step(gradient: Tensor, x: Tensor, lr: Rate, state: Tensors) -> tuple[Tensor, Tensors]:
        pulled = gradient + mu * (x - state["anchor"])
        x, rest = inner.step(pulled, x, lr, {k: v for k, v in state.items() if k != "anchor"})
        return x, {"anchor": state["anchor"], **rest}

    return inner._replace(begin=begin, step=step, name=f"proximal({mu:g}, {inner})")


Schedule = Callable[[int], float]


@dataclass(frozen=True)
class Halve:
    """Half the step size every `every` rounds, from round `after` on (FedAU's CIFAR-100).

    >>> [Halve(0.4, every=2, after=1)(t) for t in range(6)]
    [0.4, 0.4, 0.4, 0.2, 0.2, 0.1]
    """

    lr: float
    every: int
    after: int = 0

    def __post_init__(self) -> None:
        require(self.lr > 0, "local.schedule.lr", self.lr, "positive")
        require(self.every >= 1, "local.schedule.every", self.every, "at least 1")

    def __call__(self, round: int) -> float:
        return self.lr * 0.5 ** max(0, (round - self.after) // self.every)


@dataclass(frozen=True)
class Piecewise:
    """`values[j]` until round `until[j]`; the last value has no end.

    >>> [Piecewise((0.1, 0.01), (2,))(t) for t in range(4)]
    [0.1, 0.1, 0.01, 0.01]
    """

    values: tuple[float, ...]
    until: tuple[int, ...]

    def __post_init__(self) -> None:
        require(
            len(self.values) == len(self.until) + 1,
            "local.schedule.values",
            self.values,
            f"one more than the {len(self.until)} rounds in until",
        )
        require(min(self.values) > 0, "local.schedule.values", self.values, "positive")
        ordered = all(a < b for a, b in pairwise(self.until))
        require(ordered, "local.schedule.until", self.until, "rounds in increasing order")

    def __call__(self, round: int) -> float:
        return self.values[sum(round >= end for end in self.until)]


@dataclass(frozen=True)
class Local:
    """What a client does in a round: `steps` steps, or `epochs` passes over its data."""

    lr: float | Schedule = 0.1
    steps: int | None = 5
    epochs: int | None = None
    batch_size: int | None = 16
    """Samples a step, drawn without replacement; None means all that the client has."""
    rule: LocalRule = field(default_factory=sgd)

    def __post_init__(self) -> None:
        one = (self.steps is None) != (self.epochs is None)
        require(one, "local.steps", self.steps, "given exactly when local.epochs is not")
        require(self.steps is None or self.steps >= 1, "local.steps", self.steps, "at least 1")
        require(self.epochs is None or self.epochs >= 1, "local.epochs", self.epochs, "at least 1")
        sized = self.batch_size is None or self.batch_size >= 1
        require(sized, "local.batch_size", self.batch_size, "at least 1, or none for all")
        positive = callable(self.lr) or self.lr > 0
        require(positive, "local.lr", self.lr, "positive")

    def rate(self, round: int) -> float:
        return self.lr(round) if callable(self.lr) else self.lr
