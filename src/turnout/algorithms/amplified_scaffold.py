"""Amplified SCAFFOLD: control variates that cover a whole window of rounds, and amplification.

Crawshaw & Liu, "Federated Learning under Periodic Client Participation and Heterogeneous Data: A New
Communication-Efficient Algorithm and Analysis", NeurIPS 2024.

SCAFFOLD's c_i and c move in every round. Here they stand still for P rounds, while each client sums
up the gradients that it sees; when the window is over, c_i becomes their mean for those who took
part in it, and the model goes γ times as far as the window has brought it. A client that is away
when its window ends takes over its new c_i when it next comes: nobody needs it before.
"""

from dataclasses import replace

import torch
from torch import Tensor

from turnout.algorithm import Algorithm, per_delivered
from turnout.algorithms.amplified import amplify
from turnout.algorithms.recipe import recipe
from turnout.parts.local import Ended, Local, LocalRule, Rate, Tensors, Told, sgd
from turnout.parts.transform import chain
from turnout.parts.transform import sgd as server_sgd
from turnout.parts.weight import uniform


@recipe
def amplified_scaffold(
    period: int = 10, factor: float = 2.0, server_lr: float = 1.0, local: Local = Local()
) -> Algorithm:
    """Amplified SCAFFOLD: local steps along g − c_i + c; after P rounds x ← x' + γ·(x − x').

    `period` is P, `factor` γ, and x' the model of P rounds before. c_i is the mean of the gradients
    of client i's last window, and c the mean of all c_i over the population.
    """
    transform = chain(server_sgd(server_lr), amplify(period, factor))
    controlled = replace(local, rule=window_control(period, local.rule))
    return Algorithm("amplified_scaffold", uniform(per_delivered), transform, controlled)


def window_control(period: int, rule: LocalRule | None = None) -> LocalRule:
    """Steps along g − c_i + c around another rule, where c_i and c move every `period` rounds.

    The client keeps c_i, the mean gradient "recent" of the newest window in which it took part,
    how many steps that is the mean of, and which window. It shares "recent": its mean over
    the population, taken at the end of a window, is the c of the next one.
    """
    inner = rule or sgd()

    def controls(kept: Tensors, told: Told) -> tuple[Tensor, Tensor]:
        """c_i in this window, and whether this is the client's first round in it."""
        fresh = kept["window"] != told.round // period + 1  # 0 is none
        return torch.where(fresh, kept["recent"], kept["control"]), fresh

    def begin(x: Tensor, kept: Tensors, told: Told) -> tuple[Tensor, Tensors]:
        control, _ = controls(kept, told)
        x, state = inner.begin(x, kept, told)
        return x, {"drift": told.means["recent"] - control, "sum": torch.zeros_like(x), **state}

    def step(gradient: Tensor, x: Tensor, lr: Rate, state: Tensors) -> tuple[Tensor, Tensors]:
        rest = {name: held for name, held in state.items() if name not in ("drift", "sum")}
        total = state["sum"] + gradient
        x, rest = inner.step(gradient + state["drift"], x, lr, rest)
        return x, {"drift": state["drift"], "sum": total, **rest}

    def end(ended: Ended, kept: Tensors, told: Told) -> tuple[Tensor, Tensors]:
        control, fresh = controls(kept, told)
        before = torch.where(fresh, 0, kept["steps"])
        steps = before + ended.steps
        recent = (before * kept["recent"] + ended.state["sum"]) / steps
        update, after = inner.end(ended, kept, told)
        window = torch.full_like(steps, told.round // period + 1)
        own = {"control": control, "recent": recent, "steps": steps, "window": window}
        return update, {**after, **own}

    return inner._replace(
        begin=begin,
        step=step,
        end=end,
        kept=(*inner.kept, "control", "recent"),
        shared=(*inner.shared, "recent"),
        numbers=(*inner.numbers, "steps", "window"),
        window=period,
        name=f"window_control({period}, {inner})",
    )
