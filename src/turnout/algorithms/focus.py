"""FOCUS: clients move by what is new in their gradients, and the server by the sum of all.

Ying, Li, Yang, "Exact and Linear Convergence for Federated Learning under Arbitrary Client
Participation is Attainable", NeurIPS 2025.

In the paper a client that takes part sets y ← 0 and, in each local step, y += g − g′, y being what
it moves along and g′ its gradient before; before the first step that is the last gradient of the
round that it was in before. The sum telescopes: y = g − G_i, with G_i the gradient that it keeps.
So the rule here steps along g − G_i, uploads γ·(G_i − G_i⁺), and keeps G_i⁺, its new last gradient.
The server adds what comes to its own sum, which is therefore −γ·Σ_all G_i, and moves by it in
every round, also when nobody came.
"""

from dataclasses import replace

import torch
from torch import Tensor

from turnout.algorithm import Algorithm, ServerTransform, State, per_client
from turnout.algorithms.recipe import recipe
from turnout.parts.local import Ended, Local, LocalRule, Rate, Tensors, Told, sgd
from turnout.parts.transform import chain
from turnout.parts.transform import sgd as server_sgd
from turnout.parts.weight import uniform


@recipe
def focus(server_lr: float = 1.0, local: Local = Local()) -> Algorithm:
    """FOCUS: y += Σ_{i∈S} (G_i⁺ − G_i), x −= (η·γ/N)·y, with G_i client i's last gradient."""
    pushing = replace(local, rule=push(local.rule))
    transform = chain(running_sum(), server_sgd(server_lr))
    return Algorithm("focus", uniform(per_client), transform, pushing)


def push(rule: LocalRule | None = None) -> LocalRule:
    """Steps along g − G_i around another rule; Δ_i is −γ·(G_i⁺ − G_i)."""
    inner = rule or sgd()

    def begin(x: Tensor, kept: Tensors, told: Told) -> tuple[Tensor, Tensors]:
        x, state = inner.begin(x, kept, told)
        return x, {"before": kept["gradient"], "last": torch.zeros_like(x), **state}

    def step(gradient: Tensor, x: Tensor, lr: Rate, state: Tensors) -> tuple[Tensor, Tensors]:
        rest = {name: held for name, held in state.items() if name not in ("before", "last")}
        last = gradient.clone()  # the engine may use its own again, and so may the inner rule
        x, rest = inner.step(gradient - state["before"], x, lr, rest)
        return x, {"before": state["before"], "last": last, **rest}

    def end(ended: Ended, kept: Tensors, told: Told) -> tuple[Tensor, Tensors]:
        last = ended.state["last"]
        _, after = inner.end(ended, kept, told)
        return ended.lr * (kept["gradient"] - last), {**after, "gradient": last}

    return inner._replace(
        begin=begin,
        step=step,
        end=end,
        kept=(*inner.kept, "gradient"),
        name=f"push({inner})",
    )


def running_sum() -> ServerTransform:
    """The sum of all directions so far, in place of the newest."""

    def init(x: Tensor) -> State:
        return {"sum": torch.zeros_like(x)}

    def apply(step: Tensor, x: Tensor, state: State) -> tuple[Tensor, State]:
        total = state["sum"] + step
        return total, {"sum": total}

    # What is summed up here are changes of what clients keep, and goes with it.
    return ServerTransform(init, apply, lambda state: {"sum": torch.zeros_like(state["sum"])})
