"""What to run, and why: a method and its settings from what the audit found."""

from dataclasses import dataclass, field
from typing import Any

from turnout.audit.classes import ClassCounts
from turnout.audit.cutoff import Cutoff, cutoff
from turnout.audit.history import History
from turnout.audit.impact import Impact
from turnout.audit.process import Fit
from turnout.theory.intervals import best_cutoff
from turnout.theory.learnability import theorem_1

SKEWED = 0.05
MISSING = 0.05
_A_CLASS = 50  # server samples for each class: SAFARI's Table 3, 500 for 10 classes
_CLASSES = 10


@dataclass(frozen=True)
class Method:
    """An [[algorithm]] table of an experiment, as plain values."""

    name: str
    label: str
    settings: dict[str, Any] = field(default_factory=dict)
    inner: "Method | None" = None

    def table(self) -> dict[str, Any]:
        inside = {} if self.inner is None else {"inner": self.inner.table()}
        return {"name": self.name, **self.settings, **inside}


@dataclass(frozen=True)
class Advice:
    method: Method
    others: tuple[Method, ...]
    """Worth trying beside it."""
    reasons: tuple[str, ...]
    costs: tuple[str, ...]
    """Memory and secure aggregation."""
    server_samples: int | None
    """How many the server should hold, if any."""
    cutoff: Cutoff | None = None
    """How K was chosen, if it was."""


def recommend(
    history: History,
    found: Fit,
    impact: Impact,
    parameters: int = 1_000_000,
    classes: ClassCounts | None = None,
) -> Advice:
    """By rules: weights if shares are wrong, a cycle's period, server data if some are never seen."""
    reasons: list[str] = []
    method, best = _weights(history, found, impact, classes, reasons)
    others = (
        [Method("fedau", "FedAU, no cutoff", {"cutoff": "none"})] if method.name == "fedau" else []
    )
    period = _period(history, found, reasons)
    if period is not None:
        label = f"amplified, P = {period}"
        others.append(Method("amplified", label, {"period": period, "factor": 2.0}, method))
    server = _server(history, impact, reasons)
    if server is not None:
        helped = {"q": 0.8, "assistance_lr": 0.1}
        others.append(method)
        method = Method("safari", f"{method.label} with SAFARI", helped, method)
    costs = _costs(history, parameters)
    return Advice(method, tuple(others), tuple(reasons), costs, server, best)


def _weights(
    history: History,
    found: Fit,
    impact: Impact,
    classes: ClassCounts | None,
    reasons: list[str],
) -> tuple[Method, Cutoff | None]:
    wrong = impact.objective.total_variation
    chance = 0.0 if found.name in ("cyclic", "regularised", "constant") else impact.by_chance
    if wrong <= max(SKEWED, 1.25 * chance):
        reasons.append(
            f"plain averaging: {100 * wrong:.1f} % of the weight is in the wrong place"
            + (
                f", no more than clients that come equally often would show by chance in a log of this "
                f"length ({100 * chance:.1f} %)"
                if wrong > SKEWED
                else ", which is little"
            )
        )
        return Method("fedavg", "average participating"), None
    reasons.append(
        f"FedAU: {100 * wrong:.0f} % of the weight is in the wrong place under plain averaging; FedAU "
        "learns weights 1/p_n as it runs and needs no rates in advance"
    )
    best = cutoff(history, impact.objective.intended, None if classes is None else classes.mix)
    settings: dict[str, Any] = {}
    if best is not None:
        K = int(best.setting.value)
        settings["cutoff"] = K
        p = history.counts[history.counts > 0] / history.rounds
        independent = int(best_cutoff(p, max(history.rounds, 2)).value)
        reasons.append(
            f"K = {K}: {best.setting.reason} [{best.setting.source}]; Theorem 3's own trade, for "
            f"independent rounds, has {independent}"
        )
    return Method("fedau", "FedAU", settings), best


def _period(history: History, found: Fit, reasons: list[str]) -> int | None:
    if found.period is None:
        return None
    period = round(found.period.rounds)
    if period < 2 or period > history.rounds // 2:
        return None
    reasons.append(
        f"P = {period}, the period, if you amplify: over whole cycles the order in which clients come "
        "averages out (δ̃(P) = 0 if every cycle is alike); it pays once local steps are small"
    )
    return period


def _server(history: History, impact: Impact, reasons: list[str]) -> int | None:
    missing = impact.objective.missing
    classes = impact.classes
    lost = [] if classes is None else [k for k, u in enumerate(classes.unseen) if u >= 0.5]
    never = int((history.counts == 0).sum())
    if missing == 0:
        return None
    risk = theorem_1(history.clients, history.clients - never).terms["(1 − ω)/8"]
    if missing < MISSING and not lost:
        reasons.append(
            f"{never} clients never came: {100 * missing:.1f} % of the objective, which no weights bring "
            "back; too little to need data at the server"
        )
        return None
    number = _A_CLASS * (_CLASSES if classes is None else len(classes.names))
    what = f"{100 * missing:.1f} % of the objective is held by {never} clients that never came"
    if classes is not None and lost:
        what += ", with most of " + ", ".join(f"class {classes.names[k]}" for k in lost[:5])
    reasons.append(
        f"SAFARI: {what}; no learner can promise a risk below {risk:.3f} without it [SAFARI, Theorem 1]"
    )
    reasons.append(
        f"about {number} samples at the server, {_A_CLASS} a class, drawn as the population is: in "
        "SAFARI's Table 3 these had 96 % of the gain of twice as many, and 5 a class half of it; "
        "q = 0.8, as 0.4 to 0.8 were alike within a point in its Table 5"
    )
    return number


def _costs(history: History, parameters: int) -> tuple[str, ...]:
    size = 4.0 * history.clients * parameters
    return (
        f"MIFA or FedVARP would keep {history.clients:,} past updates at the server: "
        f'{_bytes(size)} at {parameters:,} parameters (with memory = "client": {_bytes(4.0 * parameters)})',
        "secure aggregation: FedAU's weights multiply on the client, so sums suffice; MIFA and FedVARP "
        "need every single update at the server, unless clients hold the memory",
    )


def _bytes(number: float) -> str:
    for unit in ("bytes", "kB", "MB", "GB"):
        if number < 1000:
            return f"{number:.3g} {unit}"
        number /= 1000
    return f"{number:.3g} TB"
