"""SAFARI's convergence bounds, the largest admissible q, and its step sizes.

"Understanding Server-Assisted Federated Learning in the Presence of Incomplete Client
Participation", ICML 2024. What can be learnt at all (Theorems 1–3) is in
`turnout.theory.learnability` and `turnout.theory.impossibility`.

Letters: gap F(x_0) − F*, smoothness L, convexity μ, noise σ, server_noise σ_s, divergence σ_G,
bias ζ (`Constants`); q the chance of a client round, local_steps K, per_round m, lr η_c,
assistance_lr η_s, rounds R.
"""

from math import log, sqrt

from turnout.errors import require
from turnout.theory.bound import (
    Bound,
    Condition,
    Setting,
    at_most,
    counts,
    equal,
    nonnegative,
    positive,
)
from turnout.theory.constants import Constants


def largest_q(
    constants: Constants,
    local_steps: int,
    assistance_lr: float,
    server_gradient: float,
    client_gradient: float,
    as_printed: bool = False,
) -> Setting:
    """Theorem 4: q ≤ 1/( (4σ_G² − 4G_2·(1/(2K²) − 2Lη_s/K²)) / ((1 − Lη_s)·G_1) + 1 ).

    `server_gradient` is G_1, the least ‖∇F(x_r)‖² of a server round; `client_gradient` is G_2, the
    least ‖(1/m) Σ_i Σ_k ∇F_i(x_{r,k})‖² of a client round. One of the paper's versions prints
    largest values; only with the least is the condition sufficient. The proof has η_s where the
    statement's bracket prints η_s² (`as_printed`). G_1 falls as training succeeds: an optimum can
    be reached only with q → 0.

    >>> constants = Constants(smoothness=1, divergence=1)
    >>> largest_q(constants, 1, assistance_lr=0.01, server_gradient=4, client_gradient=0).value
    0.497487...
    """
    counts(local_steps=local_steps)
    positive(assistance_lr=assistance_lr)
    nonnegative(server_gradient=server_gradient, client_gradient=client_gradient)
    L, K = constants.smoothness, local_steps
    below = L * assistance_lr < 1
    require(below, "assistance_lr", assistance_lr, f"below 1/L = {1 / L:g}")
    step = assistance_lr**2 if as_printed else assistance_lr
    harm = 4 * constants.divergence**2 - 4 * client_gradient * (1 - 4 * L * step) / (2 * K**2)
    help_ = (1 - L * assistance_lr) * server_gradient
    value = 1.0 if harm <= 0 else help_ / (harm + help_)
    reason = "client rounds lead astray no more than server rounds lead back"
    return Setting("q", "q", value, reason, "SAFARI, Theorem 4", {reason: value})


def theorem_4_steps(constants: Constants, local_steps: int, rounds: int) -> tuple[Setting, Setting]:
    """Corollary 1's η_s = 1/√R under Theorem 4's limit, and η_c = 2η_s/K.

    >>> assistance_lr, lr = theorem_4_steps(Constants(smoothness=1), local_steps=5, rounds=10_000)
    >>> assistance_lr.value, lr.value
    (0.01, 0.004)
    """
    counts(local_steps=local_steps, rounds=rounds)
    limits = {
        "1/√R": 1 / sqrt(rounds),
        "1/(8√30·L), for η_c ≤ 1/(4√30·L·K)": 1 / (8 * sqrt(30) * constants.smoothness),
    }
    server = Setting.least("assistance_lr", "η_s", limits, "SAFARI, Corollary 1")
    client = {"2η_s/K": 2 * server.value / local_steps}
    return server, Setting.least("lr", "η_c", client, "SAFARI, Theorem 4")


def theorem_4(
    constants: Constants,
    q: float,
    local_steps: int,
    per_round: int,
    assistance_lr: float,
    rounds: int,
    server_gradient: float,
    client_gradient: float,
    lr: float | None = None,
) -> Bound:
    """Theorem 4, non-convex: (1/R) Σ E‖∇F(x_r)‖². `lr` is 2η_s/K unless given.

    >>> bound = theorem_4(Constants(smoothness=1, gap=1, server_noise=1), q=0.5, local_steps=1,
    ...     per_round=5, assistance_lr=0.01, rounds=200, server_gradient=1, client_gradient=1)
    >>> bound.value, bound.holds  # 2/(200·0.01) + 0.01·0.5·1
    (1.005, True)
    """
    nonnegative(gap=constants.gap)
    counts(per_round=per_round, rounds=rounds)
    _chance(q)
    L, K, eta = constants.smoothness, local_steps, assistance_lr
    client_lr = 2 * eta / K if lr is None else lr
    admissible = largest_q(constants, K, eta, server_gradient, client_gradient).value
    return Bound.of(
        "SAFARI, Theorem 4",
        "(1/R) Σ E‖∇F(x_r)‖²",
        _non_convex(constants, q, K, per_round, eta, rounds),
        at_most("η_c ≤ 1/(4√30·L·K)", client_lr, 1 / (4 * sqrt(30) * L * K)),
        equal("η_c = 2η_s/K", client_lr, 2 * eta / K),
        at_most("q ≤ the largest admissible (largest_q)", q, admissible),
    )


def corollary_1(
    constants: Constants,
    q: float,
    local_steps: int,
    per_round: int,
    rounds: int,
    fast: bool = False,
) -> Bound:
    """Corollary 1: Theorem 4 at η_s = 1/√R, or (`fast`) at η_s = √(mK/R).

    O(1/√R); O(1/√(mKR)) at the larger step, if σ_s² = O(σ²/(mK)) or q = Ω(1 − 1/(mK)). The
    conditions of Theorem 4 apply as well.

    >>> corollary_1(Constants(smoothness=1, gap=1), q=1, local_steps=4, per_round=1,
    ...     rounds=10_000, fast=True).terms["start, 2F/(R·η_s)"]
    0.01
    """
    nonnegative(gap=constants.gap)
    counts(local_steps=local_steps, per_round=per_round, rounds=rounds)
    _chance(q)
    many = per_round * local_steps
    step = sqrt((many if fast else 1) / rounds)
    limit = at_most(
        "η_s ≤ 1/(8√30·L), as Theorem 4 has it", step, 1 / (8 * sqrt(30) * constants.smoothness)
    )
    quiet = at_most(
        "σ_s² ≤ σ²/(mK), or 1 − q ≤ 1/(mK)",
        min(constants.server_noise**2 - constants.noise**2 / many, 1 - q - 1 / many),
        0.0,
    )
    rate = "O(1/√(mKR)), η_s = √(mK/R)" if fast else "O(1/√R), η_s = 1/√R"
    return Bound.of(
        f"SAFARI, Corollary 1: {rate}",
        "(1/R) Σ E‖∇F(x_r)‖²",
        _non_convex(constants, q, local_steps, per_round, step, rounds),
        limit,
        *([quiet] if fast else []),
        note="and q as Theorem 4 admits (largest_q)",
    )


def theorem_5_steps(constants: Constants, local_steps: int, rounds: int) -> tuple[Setting, Setting]:
    """Steps of Ω(log R / R): η̄ = log R/R, under limits that make Theorem 5 true.

    η̄ = η_c·K·μ/2 = 2η_s·L·μ/(L + μ), so η_c·K = 4η_s·L/(L + μ). To η_s ≤ 2/(L + μ) comes
    η_c·K·L ≤ 1/22, without which a client round may overshoot (`theorem_5_mended`).

    >>> steps = theorem_5_steps(Constants(smoothness=1, convexity=1), local_steps=4, rounds=1000)
    >>> [round(step.value, 6) for step in steps]  # η̄ = 0.006908 = η_s = 2·η_c
    [0.006908, 0.003454]
    """
    counts(local_steps=local_steps, rounds=rounds)
    positive(convexity=constants.convexity)
    L, mu = constants.smoothness, constants.convexity
    limits = {
        "(log R/R)·(L + μ)/(2Lμ)": log(max(rounds, 2)) / rounds * (L + mu) / (2 * L * mu),
        "2/(L + μ)": 2 / (L + mu),
        "(L + μ)/(88·L²), for η_c·K·L ≤ 1/22": (L + mu) / (88 * L**2),
    }
    server = Setting.least("assistance_lr", "η_s", limits, "SAFARI, Theorem 5")
    client = {"4η_s·L/(K(L + μ))": server.value * 4 * L / (local_steps * (L + mu))}
    return server, Setting.least("lr", "η_c", client, "SAFARI, Theorem 5")


def theorem_5(
    constants: Constants,
    q: float,
    local_steps: int,
    per_round: int,
    assistance_lr: float,
    rounds: int,
    distance: float,
) -> Bound:
    """Theorem 5, μ-strongly convex, as stated: E‖x_R − x*‖², from `distance` = ‖x_0 − x*‖.

    As stated it asks only for η_s ≤ 2/(L + μ). Two more conditions turn out to be needed, and are
    listed: η_c·K·L ≤ 1/22, and that clients who come are unbiased (ζ = 0), for it has no term for
    those who never come. `theorem_5_mended` has one.

    >>> theorem_5(Constants(smoothness=1, convexity=1, bias=0), q=0.5, local_steps=1, per_round=1,
    ...     assistance_lr=0.5, rounds=2, distance=4).value  # (1 − 0.5)²·4²
    4.0
    """
    lr, rate = _theorem_5_rates(constants, local_steps, assistance_lr)
    conditions = _theorem_5_conditions(constants, q, local_steps, per_round, assistance_lr, lr)
    moved = _moved(constants, local_steps, lr)
    L, mu, K = constants.smoothness, constants.convexity, local_steps
    terms = {
        "divergence, 8qη_cKσ_G²/μ": 8 * q * lr * K * constants.divergence**2 / mu,
        "noise, 2qη_cσ²/(μm)": 2 * q * lr * constants.noise**2 / (mu * per_round),
        "local drift": 4 * q * L * (1 + K * lr * L) / mu * moved,
        "server's noise": _server_part(constants, q, assistance_lr),
    }
    return Bound.of(
        "SAFARI, Theorem 5",
        "E‖x_R − x*‖²",
        {"start, (1 − η̄)^R·‖x_0 − x*‖²": _start(rate, rounds, distance), **terms},
        *conditions,
        at_most("ζ = 0: all can come (not in the paper)", q * _bias(constants), 0.0),
    )


def theorem_5_mended(
    constants: Constants,
    q: float,
    local_steps: int,
    per_round: int,
    assistance_lr: float,
    rounds: int,
    distance: float,
) -> Bound:
    """Theorem 5 where some clients never come: our own proof, with explicit constants.

    ζ = ‖(mean of ∇F_i over those who can come) − ∇F‖ leaves 4qζ²/μ², which no step size removes:
    only a smaller q does. Each F_i must be μ-strongly convex; the proof is in docs/theory.md.

    >>> bound = theorem_5_mended(Constants(smoothness=1, convexity=1, divergence=1, bias=0.5),
    ...     q=0.5, local_steps=1, per_round=1, assistance_lr=1e-9, rounds=1, distance=0)
    >>> round(bound.value, 6), bound.dominant  # 4·0.5·0.25
    (0.5, 'clients that never come, 4qζ²/μ²')
    """
    lr, rate = _theorem_5_rates(constants, local_steps, assistance_lr)
    conditions = _theorem_5_conditions(constants, q, local_steps, per_round, assistance_lr, lr)
    moved = _moved(constants, local_steps, lr)
    L, mu, K = constants.smoothness, constants.convexity, local_steps
    terms = {
        "clients that never come, 4qζ²/μ²": 4 * q * (_bias(constants) / mu) ** 2,
        "divergence, 16qη_cKσ_G²/μ": 16 * q * lr * K * constants.divergence**2 / mu,
        "noise, 4qη_cσ²/(μm)": 4 * q * lr * constants.noise**2 / (mu * per_round),
        "local drift": 4 * q * L * (1 + 2 * K * lr * L) / mu * moved,
        "server's noise": _server_part(constants, q, assistance_lr),
    }
    return Bound.of(
        "SAFARI, Theorem 5, mended",
        "E‖x_R − x*‖²",
        {"start, (1 − η̄)^R·‖x_0 − x*‖²": _start(rate, rounds, distance), **terms},
        *conditions,
    )


def _non_convex(
    constants: Constants, q: float, steps: int, per_round: int, eta: float, rounds: int
) -> dict[str, float]:
    L, K, variance = constants.smoothness, steps, constants.noise**2
    apart = variance + 6 * K * constants.divergence**2
    return {
        "start, 2F/(R·η_s)": 2 * constants.gap / (rounds * eta),
        "server's noise, Lη_s(1−q)σ_s²": L * eta * (1 - q) * constants.server_noise**2,
        "local drift, (80qL²η_s²/K)(σ² + 6Kσ_G²)": 80 * q * (L * eta) ** 2 / K * apart,
        "noise, 8Lqη_sσ²/(mK)": 8 * L * q * eta * variance / (per_round * K),
    }


def _theorem_5_rates(
    constants: Constants, local_steps: int, assistance_lr: float
) -> tuple[float, float]:
    """η_c and η̄ that belong to η_s."""
    positive(convexity=constants.convexity, assistance_lr=assistance_lr)
    counts(local_steps=local_steps)
    L, mu = constants.smoothness, constants.convexity
    lr = 4 * assistance_lr * L / (local_steps * (L + mu))
    return lr, lr * local_steps * mu / 2


def _theorem_5_conditions(
    constants: Constants, q: float, steps: int, per_round: int, assistance_lr: float, lr: float
) -> tuple[Condition, ...]:
    _chance(q)
    counts(per_round=per_round)
    L, mu = constants.smoothness, constants.convexity
    overshoot = lr * steps * L if q else 0.0
    return (
        at_most("η_s ≤ 2/(L + μ)", assistance_lr, 2 / (L + mu)),
        at_most("η_c·K·L ≤ 1/22 (not in the paper)", overshoot, 1 / 22),
    )


def _start(rate: float, rounds: int, distance: float) -> float:
    nonnegative(distance=distance)
    counts(rounds=rounds)
    return float(abs(1 - rate) ** rounds * distance**2)


def _moved(constants: Constants, local_steps: int, lr: float) -> float:
    """5Kη_c²(σ² + 6Kσ_G²): how far local steps move a client, squared, gradients aside."""
    spread = constants.noise**2 + 6 * local_steps * constants.divergence**2
    return 5 * local_steps * lr**2 * spread


def _server_part(constants: Constants, q: float, assistance_lr: float) -> float:
    L, mu = constants.smoothness, constants.convexity
    return (1 - q) * (L + mu) * assistance_lr * constants.server_noise**2 / (2 * L * mu)


def _bias(constants: Constants) -> float:
    return constants.divergence if constants.bias is None else constants.bias


def _chance(q: float) -> None:
    require(0 <= q <= 1, "q", q, "a probability in [0, 1]")
