"""Generalized FedAvg: the divergence split in three, and settings for γ, η and P.

Wang & Ji, "A Unified Analysis of Federated Learning with Arbitrary Client Participation",
NeurIPS 2022. The four kinds of participation that its results tell apart are in
`turnout.theory.classes`.

Letters: gap F, smoothness L, noise σ, divergence δ (`Constants`); local_steps I, lr γ, factor η,
period P, rounds T; q_t^n the weight of client n in round t, Σ_n q_t^n = 1, Σ_n (q_t^n)² ≤ ρ².
"""

from dataclasses import dataclass
from itertools import pairwise
from math import inf, sqrt

import numpy as np
from numpy.typing import ArrayLike, NDArray

from turnout.errors import require
from turnout.theory.bound import Bound, Setting, at_most, counts, nonnegative, positive
from turnout.theory.constants import Constants

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Split:
    """δ split in three, each in its worst window of P rounds.

    In every window, ν̃² + β̃² + δ̃² = mean over t of Σ_n q_t^n ‖∇F_n − ∇f‖².
    """

    among: float
    """ν̃: between those sampled in a round."""
    sampling: float
    """β̃: between one round's average and the window's."""
    window: float
    """δ̃(P): between the window's average and ∇f. What amplification cannot mend."""
    rho: float
    """ρ: the largest √Σ_n (q_t^n)² of a round."""
    period: int
    windows: int

    def __str__(self) -> str:
        return (
            f"divergence at one x, in the worst of {self.windows} windows of P = {self.period} rounds\n"
            f"  δ̃(P), of a window from ∇f           {self.window:.4g}\n"
            f"  β̃, of a round from its window       {self.sampling:.4g}\n"
            f"  ν̃, among the clients of a round     {self.among:.4g}\n"
            f"  ρ, largest √Σ_n (q_t^n)² of a round  {self.rho:.4g}"
        )


def round_weights(mask: ArrayLike) -> Floats:
    """q_t^n = 1{n∈S_t}/|S_t| of those rounds in which anybody came; [rounds, clients].

    >>> round_weights([[1, 1], [0, 0], [0, 1]]).tolist()
    [[0.5, 0.5], [0.0, 1.0]]
    """
    return _weigh(_table("mask", mask) != 0)[1]


def windows(mask: ArrayLike, period: int) -> list[Floats]:
    """q of each whole window of P rounds, windows in which nobody came left out.

    A round without anybody moves nothing, so averages are taken over the others.
    """
    table = _table("mask", mask) != 0
    counts(period=period)
    whole = len(table) // period
    require(whole > 0, "period", period, f"at most the rounds of the mask, {len(table)}")
    when, weights = _weigh(table)
    bounds = np.searchsorted(when, np.arange(whole + 1) * period)
    return [weights[start:stop] for start, stop in pairwise(bounds) if start < stop]


def divergence_split(mask: ArrayLike, gradients: ArrayLike, period: int) -> Split:
    """β̃, ν̃ and δ̃(P) of a mask [rounds, clients], from ∇F_n(x) [clients, d] at one x.

    The definitions used, with ḡ_t = Σ_n q_t^n ∇F_n and ḡ its mean over a window of P rounds:
    δ̃² = ‖ḡ − ∇f‖², β̃² = mean_t ‖ḡ_t − ḡ‖², ν̃² = mean_t Σ_n q_t^n ‖∇F_n − ḡ_t‖², each the largest
    of all windows. At several x, take the largest again.

    >>> split = divergence_split([[1, 0], [0, 1]], [[1.0], [-1.0]], period=2)
    >>> split.among, split.sampling, split.window
    (0.0, 1.0, 0.0)
    """
    table = np.asarray(gradients, dtype=np.float64)
    parts = windows(mask, period)
    require(bool(parts), "mask", "empty", "one in which somebody comes")
    clients = parts[0].shape[1]
    fits = table.ndim == 2 and len(table) == clients
    require(fits, "shape of gradients", table.shape, f"({clients}, dimensions)")
    apart = table - table.mean(axis=0)
    lengths = np.square(apart).sum(axis=1)
    among, sampling, window = [], [], []
    for q in parts:
        each = q @ apart
        mean = each.mean(axis=0)
        window.append(float(mean @ mean))
        sampling.append(float(np.square(each - mean).sum(axis=1).mean()))
        among.append(float((q @ lengths - np.square(each).sum(axis=1)).mean()))
    return Split(
        among=sqrt(max(0.0, max(among))),  # a difference, so rounding may leave −1e-17
        sampling=sqrt(max(sampling)),
        window=sqrt(max(window)),
        rho=max(float(sqrt(np.square(q).sum(axis=1).max())) for q in parts),
        period=period,
        windows=len(parts),
    )


def corollary_3_2_steps(
    constants: Constants, local_steps: int, rounds: int, period: int, rho: float
) -> tuple[Setting, Setting]:
    """Corollary 3.2: γ = 1/(12·L·I·P·√T), η = min{12P·√(L·I·F)/(σρ), 12√T}.

    >>> lr, factor = corollary_3_2_steps(Constants(smoothness=1, gap=1, noise=1), local_steps=1,
    ...     rounds=10_000, period=10, rho=1)
    >>> round(1 / lr.value), factor.value
    (12000, 120.0)
    """
    positive(gap=constants.gap, rho=rho)
    random = constants.noise * rho
    first = 12 * period * sqrt(constants.smoothness * local_steps * constants.gap)
    limits = {
        "12P·√(L·I·F)/(σρ)": first / random if random else inf,
        "12√T": 12 * sqrt(max(rounds, 0)),
    }
    return (
        _small_lr(constants, local_steps, rounds, period, "Corollary 3.2"),
        Setting.least("factor", "η", limits, "Generalized FedAvg, Corollary 3.2"),
    )


def corollary_3_3_steps(
    constants: Constants, local_steps: int, rounds: int, period: int, rho: float
) -> tuple[Setting, Setting]:
    """Corollary 3.3: the same γ, η = 12P·√(L·I·F)/ρ; needs no σ.

    >>> corollary_3_3_steps(Constants(smoothness=1, gap=4), local_steps=1, rounds=10_000,
    ...     period=10, rho=0.5)[1].value
    480.0
    """
    positive(gap=constants.gap, rho=rho)
    factor = 12 * period * sqrt(constants.smoothness * local_steps * constants.gap) / rho
    source = "Generalized FedAvg, Corollary 3.3"
    return (
        _small_lr(constants, local_steps, rounds, period, "Corollary 3.3"),
        Setting.least("factor", "η", {"12P·√(L·I·F)/ρ": factor}, source),
    )


def corollary_3_2(
    constants: Constants,
    local_steps: int,
    rounds: int,
    period: int,
    rho: float,
    window: float,
    sampling: float | None = None,
    among: float | None = None,
) -> Bound:
    """Corollary 3.2: the order of the mean of ‖∇f‖² at the windows' starts.

    `window` is δ̃(P); `sampling` β̃ and `among` ν̃ are at most δ, which stands for them if they are
    not given. The last two terms follow from how far γ = 1/(12LIP√T) lets x move in a window of P
    rounds and in a round.

    >>> bound = corollary_3_2(Constants(smoothness=1, gap=1, noise=2), local_steps=4,
    ...     rounds=10_000, period=10, rho=0.5, window=0)
    >>> bound.dominant, bound.value  # 2·0.5/√(4·10⁴) beside 10/10⁴ and 4/(4·10·10⁴)
    ('noise, σρ√(LF/(IT))', 0.00601)
    """
    leading = {
        "noise, σρ√(LF/(IT))": constants.noise
        * rho
        * _leading(constants, local_steps, rounds, period, rho),
        "start, LPF/T": constants.smoothness * period * constants.gap / rounds,
    }
    drift = _drift(constants, local_steps, rounds, period, window, sampling, among)
    return Bound.of(
        "Generalized FedAvg, Corollary 3.2",
        "mean of E‖∇f(x)‖² at the windows' starts",
        {**leading, **drift},
        at_most("P ≤ T/2", period, rounds / 2),
        kind="order",
    )


def corollary_3_3(
    constants: Constants,
    local_steps: int,
    rounds: int,
    period: int,
    rho: float,
    window: float,
    sampling: float | None = None,
    among: float | None = None,
) -> Bound:
    """Corollary 3.3: for T so large that the leading term is free of P: (1 + σ²)·ρ·√(LF/(IT)).

    With S clients a round of equal weight ρ = 1/√S: O((1 + σ²)/√(SIT)).

    >>> corollary_3_3(Constants(smoothness=1, gap=1, noise=1), local_steps=1, rounds=10_000,
    ...     period=10, rho=0.5, window=0).terms["leading, (1 + σ²)ρ√(LF/(IT))"]
    0.01
    """
    L, F = constants.smoothness, constants.gap
    leading = rho * _leading(constants, local_steps, rounds, period, rho)
    drift = _drift(constants, local_steps, rounds, period, window, sampling, among)
    return Bound.of(
        "Generalized FedAvg, Corollary 3.3",
        "mean of E‖∇f(x)‖² at the windows' starts",
        {"leading, (1 + σ²)ρ√(LF/(IT))": (1 + constants.noise**2) * leading, **drift},
        at_most(
            "√F/(ρ√(LIT)) ≤ 1/(LIP)",
            sqrt(F / (L * local_steps * rounds)) / rho,
            1 / (L * local_steps * period),
        ),
        at_most("P ≤ T/2", period, rounds / 2),
        kind="order",
    )


def _leading(constants: Constants, local_steps: int, rounds: int, period: int, rho: float) -> float:
    nonnegative(gap=constants.gap)
    positive(rho=rho)
    counts(local_steps=local_steps, rounds=rounds, period=period)
    return sqrt(constants.smoothness * constants.gap / (local_steps * rounds))


def _drift(
    constants: Constants,
    local_steps: int,
    rounds: int,
    period: int,
    window: float,
    sampling: float | None,
    among: float | None,
) -> dict[str, float]:
    beta = constants.divergence if sampling is None else sampling
    nu = constants.divergence if among is None else among
    nonnegative(window=window, sampling=beta, among=nu)
    variance = constants.noise**2
    return {
        "participation, δ̃²(P)": window**2,
        "drift over a window, (β̃² + σ²/(IP))/T": (beta**2 + variance / (local_steps * period))
        / rounds,
        "drift in a round, ν̃²/(P²T)": nu**2 / (period**2 * rounds),
    }


def _small_lr(
    constants: Constants, local_steps: int, rounds: int, period: int, corollary: str
) -> Setting:
    counts(local_steps=local_steps, rounds=rounds, period=period)
    fits = period <= rounds / 2
    require(fits, "period", period, f"at most half of the {rounds} rounds")
    value = 1 / (12 * constants.smoothness * local_steps * period * sqrt(rounds))
    source = f"Generalized FedAvg, {corollary}"
    return Setting.least("lr", "γ", {"1/(12·L·I·P·√T)": value}, source)


def _weigh(table: NDArray[np.bool_]) -> tuple[NDArray[np.int64], Floats]:
    came = table.sum(axis=1)
    when = np.flatnonzero(came)
    return when, table[when] / came[when, None]


def _table(field: str, values: ArrayLike) -> NDArray[np.float64]:
    table = np.asarray(values, dtype=np.float64)
    require(
        table.ndim == 2 and table.size > 0, f"shape of {field}", table.shape, "[rounds, clients]"
    )
    return table
