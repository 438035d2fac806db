"""SCAFFOLD: control variates against client drift.

Karimireddy et al., "SCAFFOLD: Stochastic Controlled Averaging for Federated Learning", ICML 2020.
"""

from dataclasses import replace

from torch import Tensor

from turnout.algorithm import Algorithm, per_delivered
from turnout.algorithms.recipe import recipe
from turnout.parts.local import Ended, Local, LocalRule, Rate, Tensors, Told, sgd
from turnout.parts.transform import sgd as server_sgd
from turnout.parts.weight import uniform


@recipe
def scaffold(server_lr: float = 1.0, local: Local = Local()) -> Algorithm:
    """SCAFFOLD (option II): local steps along g − c_i + c; x += (η/|S|) Σ_{i∈S} Δ_i."""
    controlled = replace(local, rule=control_variates(local.rule))
    return Algorithm("scaffold", uniform(per_delivered), server_sgd(server_lr), controlled)


def control_variates(rule: LocalRule | None = None) -> LocalRule:
    """Steps along g − c_i + c around another rule.

    The client keeps c_i and the server the mean c over the whole population, so that the change
    of c is (|S|/N) times the mean change of those who came (the paper's factor), not that mean.
    """
    inner = rule or sgd()

    def begin(x: Tensor, kept: Tensors, told: Told) -> tuple[Tensor, Tensors]:
        drift = told.means["control"] - kept["control"]
        x, state = inner.begin(x, kept, told)
        return x, {"drift": drift, **state}

    def step(gradient: Tensor, x: Tensor, lr: Rate, state: Tensors) -> tuple[Tensor, Tensors]:
        rest = {name: held for name, held in state.items() if name != "drift"}
        x, rest = inner.step(gradient + state["drift"], x, lr, rest)
        return x, {"drift": state["drift"], **rest}

    def end(ended: Ended, kept: Tensors, told: Told) -> tuple[Tensor, Tensors]:
        # Option II: c_i − c + (x_t − y_i)/(Kγ), and Δ_i = y_i − x_t.
        drift = told.means["control"] - kept["control"]
        control = -drift - ended.update / (ended.steps * ended.lr)
        update, after = inner.end(ended, kept, told)
        return update, {**after, "control": control}

    names = ("control",)
    return inner._replace(
        begin=begin,
        step=step,
        end=end,
        kept=inner.kept + names,
        shared=inner.shared + names,
        name=f"control_variates({inner})",
    )
