"""How well FedAU's weights know 1/p: participation intervals cut at K, and the choice of K.

FedAU, appendix B.6, Theorem 3 and Corollary 4. A long cutoff K lets rare clients have their true
weight (bias); a short one closes intervals often (variance). Clients come independently of other
rounds here; `shrinkage` needs no such assumption.
"""

import math
from collections import deque

import numpy as np
from numpy.typing import ArrayLike, NDArray

from turnout.errors import require
from turnout.participation.inputs import chances
from turnout.theory.bound import Bound, Condition, Setting, counts

Floats = NDArray[np.float64]


def interval_mean(p: float, cutoff: int) -> Bound:
    """B.6.2: an interval cut at K has mean 1/p − (1−p)^K/p. An equality.

    >>> interval_mean(0.5, 2).value  # 1 or 2 rounds, as likely as each other
    1.5
    """
    rate = _rate(p)
    counts(cutoff=cutoff)
    mean = -math.expm1(cutoff * _log_absent(rate)) / rate
    cut = -((1 - rate) ** cutoff) / rate
    terms = {"1/p": 1 / rate, "cut at K": cut}
    return Bound("FedAU, B.6.2", "mean interval", mean, terms, kind="equal")


def interval_variance(p: float, cutoff: int) -> Bound:
    """B.6.2: its variance is (1−p)/p² − (2K−1)(1−p)^K/p − (1−p)^{2K}/p². An equality.

    >>> interval_variance(0.5, 2).value
    0.25
    """
    rate = _rate(p)
    counts(cutoff=cutoff)
    absent = 1 - rate
    terms = {
        "geometric": absent / rate**2,
        "cut at K": -(2 * cutoff - 1) * absent**cutoff / rate,
        "square of the mean's cut": -(absent ** (2 * cutoff)) / rate**2,
    }
    value = sum(terms.values())
    if cutoff * rate < 1:  # The terms cancel; E X² = Σ_{j<K} (2j+1)(1−p)^j does not.
        j = np.arange(cutoff)
        mean = interval_mean(rate, cutoff).value
        value = float(((2 * j + 1 - mean) * np.exp(j * _log_absent(rate))).sum())
    return Bound("FedAU, B.6.2", "variance of an interval", value, terms, kind="equal")


def weight_error(p: float, cutoff: int, round: int) -> Bound:
    """B.6.8: E(p·ω_t − 1)² ≤ 2K(1−p)/t + (1−p)^{2K} once an interval has closed.

    The proof averages a fixed number of intervals; at a fixed round their number is random.
    `exact_weight_error` has no such gap: the bound holds at every round where it was compared.

    >>> weight_error(0.5, 2, round=8).value
    0.3125
    """
    rate = _rate(p)
    counts(cutoff=cutoff, round=round)
    return Bound.of(
        "FedAU, B.6.8",
        "E(p·ω_t − 1)²",
        {
            "variance, 2K(1−p)/t": 2 * cutoff * (1 - rate) / round,
            "bias, (1−p)^{2K}": (1 - rate) ** (2 * cutoff),
        },
        Condition("t ≥ K: an interval has closed for sure", round >= cutoff, round, cutoff),
    )


def exact_weight_error(p: float, cutoff: int | None, rounds: int) -> Floats:
    """E(p·ω_t − 1)² at t = 0 … rounds, exactly, for independent rounds; K may be None (infinite).

    ω_t = s/m if the m-th interval closed after round s and none since (1 before the first one
    closes). Its law follows from f_m(s), the chance that the m-th interval ends at s.

    >>> exact_weight_error(0.5, 2, rounds=2).tolist()  # ω_2: 2 if absent in round 0, else 1
    [0.25, 0.25, 0.125]
    """
    rate = _rate(p)
    if cutoff is not None:
        counts(cutoff=cutoff)
    counts(rounds=rounds)
    absent = 1 - rate
    # Beyond so many intervals the chance is below 1e-15 (Bernstein), and they never join in.
    often = rounds * rate + 10 * math.sqrt(rounds * rate * absent) + 40
    width = min(rounds, math.ceil(often + (0 if cutoff is None else rounds / cutoff))) + 1
    number = np.arange(width, dtype=np.float64)

    def error(t: int) -> Floats:
        omega = np.divide(t, number, out=np.ones(width), where=number > 0)
        return np.square(rate * omega - 1)

    ends = np.zeros(width)  # f_m(t)
    ends[0] = 1.0
    open_now = ends.copy()  # the m-th interval has ended, the next one not yet
    weighted = ends * error(0)  # the same, each with the error that its ω makes
    out = np.empty(rounds + 1)
    out[0] = weighted.sum()
    past: deque[tuple[Floats, Floats]] = deque([(ends, weighted.copy())])
    never = np.zeros(width)
    for t in range(1, rounds + 1):
        aged, aged_weighted = never, never
        if cutoff is not None and len(past) == cutoff:
            ended, ended_weighted = past.popleft()
            whole = absent**cutoff
            aged, aged_weighted = whole * ended, whole * ended_weighted
        # An open interval ends because the client comes, or because it is K rounds old.
        ends = np.zeros(width)
        ends[1:] = (rate * open_now + aged)[:-1]
        fresh = ends * error(t)
        open_now = absent * open_now - aged + ends
        weighted = absent * weighted - aged_weighted + fresh
        if cutoff is not None:
            past.append((ends, fresh))
        out[t] = weighted.sum()
    return out


def theorem_3(p: ArrayLike, cutoff: int, rounds: int) -> Bound:
    """Theorem 3: (1/NT) Σ_t Σ_n E(p_n ω_t^n − 1)² = O( K·log T/T + (1/N) Σ (1−p_n)^{2K} ).

    >>> theorem_3([1.0, 0.5], cutoff=1, rounds=1000).terms["bias, mean of (1−p)^{2K}"]
    0.125
    """
    rates = _rates(p)
    counts(cutoff=cutoff, rounds=rounds)
    return Bound.of(
        "FedAU, Theorem 3",
        "(1/NT) Σ_t Σ_n E(p_n·ω_t^n − 1)²",
        {
            "variance, K·log T/T": cutoff * math.log(rounds) / rounds,
            "bias, mean of (1−p)^{2K}": _bias(rates, cutoff),
        },
        kind="order",
    )


def mean_weight_error(p: ArrayLike, cutoff: int, rounds: int) -> Bound:
    """Theorem 3 with constants: the mean of B.6.8 over rounds t = 0 … T − 1.

    Round 0 has ω = 1 and error (1−p)² ≤ 1; Σ_{t=1}^{T−1} 1/t ≤ 1 + log T.

    >>> mean_weight_error([1.0], cutoff=50, rounds=1000).value
    0.001
    """
    rates = _rates(p)
    counts(cutoff=cutoff, rounds=rounds)
    spread = float((1 - rates).mean())
    return Bound.of(
        "FedAU, Theorem 3 summed from B.6.8",
        "(1/NT) Σ_t Σ_n E(p_n·ω_t^n − 1)²",
        {
            "round 0, 1/T": 1 / rounds,
            "variance, 2K(1 + log T)·mean(1−p)/T": 2
            * cutoff
            * (1 + math.log(rounds))
            * spread
            / rounds,
            "bias, mean of (1−p)^{2K}": _bias(rates, cutoff),
        },
        note="B.6.8 used at every round, also before K (compared with the exact error in tests)",
    )


def corollary_4_cutoff(p: ArrayLike, rounds: int) -> Setting:
    """Corollary 4: K = ⌈log_c T⌉ with c = 1/(1 − min p)².

    >>> corollary_4_cutoff([0.5, 0.1], rounds=2000).value  # (1 − 0.1)^{2·37} ≤ 1/2000
    37.0
    """
    rates = _rates(p)
    counts(rounds=rounds)
    least = float(rates.min())
    base = -2 * _log_absent(least)
    value = 1 if math.isinf(base) else max(1, math.ceil(math.log(rounds) / base - 1e-12))
    reason = f"⌈log T / −2·log(1 − min p)⌉ with min p = {least:.4g}, so that (1−p)^{{2K}} ≤ 1/T"
    return Setting("cutoff", "K", float(value), reason, "FedAU, Corollary 4", {reason: value})


def best_cutoff(p: ArrayLike, rounds: int) -> Setting:
    """The K at which Theorem 3's two terms have the smallest sum, over all clients at once.

    Corollary 4 follows the rarest client alone; this weighs it against the others. The theorem's
    hidden constants make it a good order of magnitude, not an optimum to the last digit.

    >>> best_cutoff([0.5, 0.1], rounds=2000).value
    16.0
    """
    rates = _rates(p)
    counts(rounds=rounds)
    # The sum is convex in K: a linear term and exponentials.
    low, high = 1, max(2, rounds)
    while low < high:
        middle = (low + high) // 2
        if theorem_3(rates, middle, rounds).value <= theorem_3(rates, middle + 1, rounds).value:
            high = middle
        else:
            low = middle + 1
    reason = "least K·log T/T + mean of (1−p)^{2K}"
    return Setting("cutoff", "K", float(low), reason, "FedAU, Theorem 3", {reason: low})


def shrinkage(gaps: ArrayLike, cutoff: int) -> float:
    """p·ω in the long run, from a client's gaps (rounds from one participation to the next).

    For any stationary process ω tends to E[gap] / E⌈gap/K⌉, so p·ω tends to 1/E⌈gap/K⌉: the
    factor by which cutting at K shrinks the client's weight. Independent rounds give 1 − (1−p)^K.

    >>> shrinkage([1, 1, 120], cutoff=50)
    0.6
    """
    counts(cutoff=cutoff)
    lengths = np.atleast_1d(np.asarray(gaps, dtype=np.int64))
    good = lengths.ndim == 1 and lengths.size > 0 and bool((lengths >= 1).all())
    require(good, "gaps", gaps, "whole numbers from 1, at least one of them")
    return float(lengths.size / (-(-lengths // cutoff)).sum())


def _bias(rates: Floats, cutoff: int) -> float:
    return float(((1 - rates) ** (2 * cutoff)).mean())


def _rate(p: float) -> float:
    return float(_rates(p)[0])


def _rates(p: ArrayLike) -> Floats:
    rates = chances("p", np.atleast_1d(np.asarray(p, dtype=np.float64)))
    for n in np.flatnonzero(rates == 0)[:1]:
        require(False, f"p of client {n}", 0.0, "above 0: who never comes has no interval")
    return rates


def _log_absent(rate: float) -> float:
    return math.log1p(-rate) if rate < 1 else -math.inf
