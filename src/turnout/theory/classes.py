"""The four kinds of participation that Generalized FedAvg's results tell apart.

What counts is δ̃²(P): how far the average of P rounds is from the average over all clients. Here
are its values where they can be had, and the period P that follows. S clients of N a round, each
with weight 1/S; ‖∇F_n − ∇f‖ ≤ δ.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from math import sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from turnout.errors import choose, require
from turnout.theory.bound import Bound, Setting, counts, nonnegative, positive
from turnout.theory.constants import Constants


@dataclass(frozen=True)
class ParticipationClass:
    name: str
    meaning: str
    window_divergence: str
    rate: str


CLASSES = {
    kind.name: kind
    for kind in (
        ParticipationClass(
            "regularised",
            "every client once (or equally often) in each cycle of P rounds",
            "δ̃(P) = 0",
            "O(σ/√(SIT)), as centralised SGD with as many samples",
        ),
        ParticipationClass(
            "ergodic",
            "every client equally often in the long run, and no more is known",
            "δ̃(P) → 0 as P → ∞",
            "→ 0, at no stated rate",
        ),
        ParticipationClass(
            "mixing",
            "stationary, every client with the same chance, memory that fades",
            "δ̃²(P) falls as 1/(SP), in expectation",
            "O((1 + σ²)/√(SIT)): linear speed-up, the leading term free of P",
        ),
        ParticipationClass(
            "independent",
            "the same, without memory from round to round",
            "δ̃²(P) falls as 1/(SP), in expectation",
            "O((1 + σ²)/√(SIT)): linear speed-up, the leading term free of P",
        ),
    )
}


def imbalance(mask: ArrayLike, period: int) -> NDArray[np.float64]:
    """Total variation between each window's mean weights and 1/N; δ̃(P) ≤ 2·δ·imbalance.

    All zero: the mask is regularised with this period.

    >>> imbalance([[1, 0], [0, 1], [1, 0], [1, 0]], period=2).tolist()
    [0.0, 0.5]
    """
    return _imbalance(_running(mask), period)


class _Running(NamedTuple):
    """Sums over the rounds before t, so that a window's mean costs one subtraction."""

    weights: NDArray[np.float64]  # [rounds + 1, clients]
    rounds: NDArray[np.int64]  # [rounds + 1]: those in which anybody came


def _running(mask: ArrayLike) -> _Running:
    table = np.asarray(mask, dtype=bool)
    require(table.ndim == 2 and table.size > 0, "shape of mask", table.shape, "[rounds, clients]")
    came = table.sum(axis=1, keepdims=True)
    weights = np.zeros((len(table) + 1, table.shape[1]))
    np.cumsum(table / np.maximum(came, 1), axis=0, out=weights[1:])
    return _Running(weights, np.concatenate([[0], np.cumsum(came[:, 0] > 0)]))


def _imbalance(running: _Running, period: int) -> NDArray[np.float64]:
    counts(period=period)
    rounds, clients = len(running.weights) - 1, running.weights.shape[1]
    require(period <= rounds, "period", period, f"at most the rounds of the mask, {rounds}")
    ends = np.arange(0, rounds + 1, period)
    came = np.diff(running.rounds[ends])
    means = np.diff(running.weights[ends], axis=0)[came > 0] / came[came > 0, None]
    found: NDArray[np.float64] = 0.5 * np.abs(means - 1 / clients).sum(axis=1)
    return found


def window_divergence(
    kind: str,
    divergence: float,
    clients: int,
    per_round: int,
    period: int,
    cycle: int | None = None,
    correlation: float = 0.0,
    imbalance: float | None = None,
) -> Bound:
    """δ̃²(P) for a kind of participation, with explicit constants.

    - regularised: after whole cycles nothing is left; of a broken one, δ²·((P mod cycle)/P)².
    - independent: δ²·(N−S)/((N−1)·S·P) in expectation, S clients drawn uniformly.
    - mixing: that times 1 + 2 Σ_k (1 − k/P) λ^k, where presence k rounds apart has correlation λ^k.
    - ergodic: (2δ·imbalance)², from the `imbalance` found in windows of a mask.

    >>> window_divergence("independent", divergence=2, clients=11, per_round=1, period=4).value
    1.0
    >>> window_divergence("regularised", 2, clients=11, per_round=1, period=22, cycle=11).value
    0.0
    """
    choose("kind", kind, CLASSES)
    nonnegative(divergence=divergence, correlation=correlation)
    counts(clients=clients, per_round=per_round, period=period)
    fits = per_round <= clients
    require(fits, "per_round", per_round, f"at most the number of clients, {clients}")
    require(correlation < 1, "correlation", correlation, "below 1")
    spread, note = divergence**2, ""
    if kind == "regularised":
        whole = clients / per_round if cycle is None else cycle
        require(whole == int(whole), "cycle", cycle, "given where S does not divide N")
        value = spread * ((period % int(whole)) / period) ** 2
    elif kind == "ergodic":
        require(imbalance is not None, "imbalance", imbalance, "measured on a mask")
        value = spread * (2 * float(imbalance or 0.0)) ** 2
    else:
        once = spread * (clients - per_round) / (max(clients - 1, 1) * per_round)
        lags = correlation if kind == "mixing" else 0.0
        k = np.arange(1, period)
        value = once / period * float(1 + 2 * ((1 - k / period) * lags**k).sum())
        note = "in expectation"
    return Bound.of(f"{kind} participation", "δ̃²(P)", {"δ̃²(P)": value}, note=note)


def best_period(
    constants: Constants, rounds: int, per_window: float, cycle: int | None = None
) -> Setting:
    """P that balances Corollary 3.2's start LPF/T against δ̃²(P) = `per_window`/P, at most T/2.

    `per_window` is P·δ̃²(P), which does not depend on P for independent and mixing participation.
    With a cycle, P is the cycle: nothing is gained by less or by more.

    >>> best_period(Constants(smoothness=1, gap=4), rounds=10_000, per_window=1.0).value
    50.0
    """
    counts(rounds=rounds)
    positive(gap=constants.gap)
    nonnegative(per_window=per_window)
    if cycle is not None:
        counts(cycle=cycle)
        limits = {"one cycle": float(cycle), "T/2": rounds / 2}
    else:
        balance = sqrt(rounds * per_window / (constants.smoothness * constants.gap))
        limits = {"√(T·P·δ̃²(P)/(L·F))": float(max(1, round(balance))), "T/2": rounds / 2}
    return Setting.least("period", "P", limits, "Generalized FedAvg, Corollary 3.2")


def period_of(
    mask: ArrayLike,
    constants: Constants,
    rounds: int,
    candidates: Iterable[int] | None = None,
) -> Setting:
    """P for an observed mask: the candidate with the least LPF/T + mean of (2δ·imbalance)².

    Candidates are powers of two and every multiple of ten unless given; a log's period, once found,
    should be among them. At least two whole windows must fit into the mask.

    >>> mask = np.eye(5)[np.arange(200) // 2 % 5]  # five clients, two rounds each
    >>> period_of(mask, Constants(smoothness=1, gap=1, divergence=1), rounds=1000).value
    10.0
    """
    positive(gap=constants.gap)
    counts(rounds=rounds)
    running = _running(mask)
    seen = len(running.rounds) - 1
    most = min(seen, rounds) // 2
    require(most >= 1, "rounds of the mask", seen, "at least 2")
    usual = {2**j for j in range(most.bit_length())} | set(range(10, most + 1, 10))
    wanted = usual if candidates is None else candidates
    offered = sorted({period for period in wanted if period <= most})
    require(bool(offered), "candidates", candidates, f"periods of at most {most} rounds")

    def order(period: int) -> float:
        left = np.square(2 * constants.divergence * _imbalance(running, period)).mean()
        return constants.smoothness * period * constants.gap / rounds + float(left)

    orders = {period: order(period) for period in offered}
    best = min(offered, key=lambda period: orders[period])
    reason = f"least LPF/T + (2δ·imbalance)² of {len(orders)} periods: {orders[best]:.3g}"
    return Setting(
        "period", "P", float(best), reason, "Generalized FedAvg, Corollary 3.2", {reason: best}
    )
