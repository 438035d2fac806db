"""`turnout theory …`: every calculator as a command, made from the function's own signature.

>>> from typer.testing import CliRunner
>>> said = CliRunner().invoke(app, ["fedau", "interval-mean", "--p", "0.5", "--cutoff", "2"])
>>> said.output.splitlines()[0]
'FedAU, B.6.2: mean interval = 1.5'
"""

import inspect
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import numpy as np
import typer
from numpy.typing import ArrayLike, NDArray

from turnout.errors import InputError
from turnout.theory import (
    amplified,
    classes,
    fedau,
    impossibility,
    intervals,
    learnability,
    objective,
    safari,
)
from turnout.theory.amplified import Split
from turnout.theory.bound import Bound, Setting
from turnout.theory.constants import Constants
from turnout.theory.learnability import Relation
from turnout.theory.objective import Objective

Calculator = Callable[..., Any]


def participation_classes() -> str:
    """The four kinds of participation that Generalized FedAvg's results tell apart."""
    return "\n".join(
        f"{kind.name}: {kind.meaning}\n  {kind.window_divergence}; {kind.rate}"
        for kind in classes.CLASSES.values()
    )


PAPERS: dict[str, tuple[str, Sequence[Calculator]]] = {
    "fedau": (
        "FedAU (ICLR 2024): what averaging minimises, the cutoff K, step sizes.",
        (
            objective.theorem_1,
            objective.average_participating,
            objective.fedau_cut,
            fedau.b_4_4,
            fedau.b_5_3,
            fedau.b_5_5,
            intervals.interval_mean,
            intervals.interval_variance,
            intervals.weight_error,
            intervals.theorem_3,
            intervals.mean_weight_error,
            intervals.corollary_4_cutoff,
            intervals.best_cutoff,
            fedau.corollary_4_steps,
            fedau.corollary_4,
        ),
    ),
    "amplified": (
        "Generalized FedAvg (NeurIPS 2022): amplification factor and period.",
        (
            participation_classes,
            amplified.divergence_split,
            classes.window_divergence,
            classes.best_period,
            classes.period_of,
            amplified.corollary_3_2,
            amplified.corollary_3_2_steps,
            amplified.corollary_3_3,
            amplified.corollary_3_3_steps,
        ),
    ),
    "safari": (
        "SAFARI (ICML 2024): what missing clients cost, and server assistance.",
        (
            learnability.theorem_1,
            impossibility.simulate_impossibility,
            learnability.theorem_2,
            learnability.theorem_3,
            safari.theorem_4,
            safari.theorem_4_steps,
            safari.largest_q,
            safari.corollary_1,
            safari.theorem_5,
            safari.theorem_5_mended,
            safari.theorem_5_steps,
            learnability.thresholds,
        ),
    ),
}

MEANINGS: Mapping[str, str] = {
    "alpha": "α of the relation between P and Q",
    "among": "ν̃: divergence among those of a round (default: δ)",
    "assistance_lr": "η_s: step size of server rounds",
    "beta": "β of the relation between P and Q",
    "bias": "ζ: distance of the mean gradient of those who can come from ∇f (default: δ)",
    "client_gradient": "G_2: least ‖(1/m) Σ_i Σ_k ∇F_i‖² of a client round",
    "clients": "N (M): number of clients",
    "convexity": "μ: strong convexity",
    "correlation": "λ: correlation of presence from one round to the next",
    "cutoff": "K: rounds after which FedAU closes an interval",
    "cycle": "rounds after which the same clients come again",
    "dimension": "d_H: VC dimension",
    "distance": "‖x_0 − x*‖",
    "divergence": "δ (σ_G): largest ‖∇F_n − ∇f‖",
    "gap": "F = f(x_0) − f*",
    "gradients": "@FILE of ∇F_n(x) at one x, a line a client, a column a parameter",
    "gradient": "G: bound on ‖∇f‖",
    "imbalance": "total variation of windows' mean weights from 1/N",
    "intended": "weights q_n of the objective (default: equal)",
    "local_steps": "I (K): local steps",
    "lr": "γ (η_c): local step size",
    "mask": "@FILE of 0s and 1s, a line a round, a column a client",
    "noise": "σ: deviation of a mini-batch's gradient",
    "noise_exponent": "β_Q (β_P): 1 without label noise",
    "p": "participation rates",
    "participating": "m: clients that ever come",
    "per_round": "S (m): clients a round",
    "per_window": "P·δ̃²(P), which is the same for all P",
    "period": "P: amplification interval",
    "q": "chance of a client round",
    "rho": "ρ: largest √Σ_n (q_t^n)²; 1/√S for plain averaging",
    "rounds": "T (R): rounds",
    "sampling": "β̃: divergence between rounds (default: δ)",
    "server_gradient": "G_1: least ‖∇F‖² of a server round",
    "server_lr": "η: server step size",
    "server_noise": "σ_s: deviation of the gradient on server data",
    "smoothness": "L: smoothness",
    "weight_error": "(1/N) Σ (p_n ω_n − 1)²",
    "weight_square": "Q: largest (1/N) Σ p_n ω_n²",
    "weights": "constant weights ω_n (default: 1)",
    "window": "δ̃(P): divergence of a window of P rounds",
}

_PARTS = (Constants, Relation)
_NUMBERS: Sequence[Any] = (int, float, bool, str, int | None, float | None)


def show(found: Any) -> str:
    """What a calculator returned, for people."""
    if isinstance(found, tuple) and not hasattr(found, "_fields"):
        return "\n".join(map(show, found))
    return str(found)


def plain(found: Any) -> Any:
    """What a calculator returned, as JSON holds it."""
    if isinstance(found, Bound | Setting):
        return found.to_dict()
    if isinstance(found, Objective):
        return {
            "shares": found.shares.tolist(),
            "intended": found.intended.tolist(),
            "total_variation": found.total_variation,
            "missing": found.missing,
        }
    if isinstance(found, impossibility.Impossibility):
        return {"epsilon": found.epsilon, "exceeding": found.exceeding, "hidden": found.hidden}
    if isinstance(found, tuple):
        return [plain(part) for part in found]
    return vars(found) if isinstance(found, Relation | Split) else found


def finite(value: Any) -> Any:
    """JSON has neither infinity nor NaN: null."""
    if isinstance(value, Mapping):
        return {key: finite(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [finite(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


_LINES = ("mask", "gradients")
"""Tables of lines and columns, even if they have one column only."""


def table(field: str, text: str) -> NDArray[np.float64]:
    """Numbers separated by commas, or a text file of them: "0.1,0.5" or "@rates.csv".

    >>> table("p", "0.1, 0.5")
    array([0.1, 0.5])
    """
    try:
        if text.startswith("@"):
            return np.loadtxt(Path(text[1:]), delimiter=",", ndmin=2 if field in _LINES else 1)
        return np.array([float(part) for part in text.split(",")])
    except (OSError, ValueError) as error:
        right = "numbers separated by commas, or @FILE"
        raise InputError(f"{field} is {text!r}; it must be {right} ({error})") from None


def command(calculator: Calculator) -> Calculator:
    """A function that typer can make options of, and that prints what `calculator` returns."""
    hints = get_type_hints(calculator)
    options: dict[str, inspect.Parameter] = {}
    tables, parts = set(), dict[str, type]()
    for name, parameter in inspect.signature(calculator).parameters.items():
        kind = hints[name]
        if kind in _PARTS:
            parts[name] = kind
            inner = get_type_hints(kind)
            for field in (f for f in fields(kind) if f.name != "condition"):
                default = inspect.signature(kind).parameters[field.name].default
                options[field.name] = _option(field.name, inner[field.name], default)
        elif kind in _NUMBERS:
            options[name] = _option(name, kind, parameter.default)
        elif kind is ArrayLike or kind == ArrayLike | None:
            tables.add(name)
            options[name] = _option(
                name, str if kind is ArrayLike else str | None, parameter.default
            )
    as_json = Annotated[bool, typer.Option("--json", help="print JSON")]
    options["as_json"] = inspect.Parameter(
        "as_json", inspect.Parameter.KEYWORD_ONLY, default=False, annotation=as_json
    )

    def run(**given: Any) -> None:
        as_json = given.pop("as_json")
        for name in tables & given.keys():
            if given[name] is not None:
                given[name] = table(name, given[name])
        for name, kind in parts.items():
            inside = {f.name: given.pop(f.name) for f in fields(kind) if f.name in given}
            given[name] = kind(**inside)
        found = calculator(**given)
        typer.echo(json.dumps(finite(plain(found)), ensure_ascii=False) if as_json else show(found))

    # Rich takes square brackets for markup.
    described = inspect.cleandoc(calculator.__doc__ or "").split("\n\n>>>")[0]
    run.__doc__ = described.replace("[", "(").replace("]", ")").replace("`", "")
    run.__signature__ = inspect.Signature(list(options.values()))  # type: ignore[attr-defined]
    return run


def _option(name: str, kind: Any, default: Any) -> inspect.Parameter:
    option = typer.Option("--" + name.replace("_", "-"), help=MEANINGS.get(name, ""))
    return inspect.Parameter(
        name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[kind, option]
    )


def build() -> typer.Typer:
    """The app, with a sub-command for each paper."""
    top = typer.Typer(
        name="theory",
        help="Bounds, conditions and recommended settings of the papers.",
        no_args_is_help=True,
        add_completion=False,  # turnout's own completes this, too
    )
    for paper, (summary, calculators) in PAPERS.items():
        sub = typer.Typer(help=summary, no_args_is_help=True)
        for calculator in calculators:
            sub.command(calculator.__name__.replace("_", "-"))(command(calculator))
        top.add_typer(sub, name=paper)
    return top


app = build()
