"""Processes with known names, over federations of any size, for the tests of the audit."""

from collections.abc import Callable

import numpy as np

from turnout.audit.history import History, from_mask
from turnout.participation import (
    Participation,
    bernoulli,
    cyclic,
    grouped,
    markov,
    regularised,
    sine_drift,
    step_drift,
    uniform,
)


def rates(clients: int, seed: int) -> np.ndarray:
    """Skewed, as in a real federation: mean about 0.21, from 0.02 to 0.95."""
    return np.clip(np.random.default_rng(seed).beta(0.8, 3, clients), 0.02, 0.95)


Make = Callable[[np.ndarray, int, int], Participation]

KNOWN: dict[str, tuple[Make, str]] = {
    "bernoulli": (lambda p, T, s: bernoulli(p, seed=s), "independent"),
    "uniform": (lambda p, T, s: uniform(len(p), max(1, len(p) // 10), seed=s), "independent"),
    "markov": (lambda p, T, s: markov(p, seed=s), "markov"),
    "markov, short spells": (lambda p, T, s: markov(p, on=0.2, seed=s), "markov"),
    "cyclic": (lambda p, T, s: cyclic(p, period=min(100, T // 4), seed=s), "cyclic"),
    "grouped": (lambda p, T, s: grouped(len(p), 5, length=T // 25, seed=s), "cyclic"),
    "same order": (lambda p, T, s: regularised(len(p), 10, seed=s), "cyclic"),
    "reshuffled": (lambda p, T, s: regularised(len(p), 10, True, seed=s), "regularised"),
    "sine": (
        lambda p, T, s: sine_drift(p, amplitude=0.8, period=int(T / 6.3), seed=s),
        "periodic",
    ),
    "sine, own phases": (
        lambda p, T, s: sine_drift(p, amplitude=0.8, period=int(T / 8.4), spread=True, seed=s),
        "periodic",
    ),
    "step": (
        lambda p, T, s: step_drift(p, at=int(T * (0.25 + 0.005 * (s * 79 % 100))), seed=s),
        "non-stationary",
    ),
    "slow": (
        lambda p, T, s: sine_drift(p, amplitude=0.9, period=2 * T, spread=True, seed=s),
        "non-stationary",
    ),
}


def drawn(name: str, clients: int, rounds: int, seed: int) -> History:
    make, _ = KNOWN[name]
    return from_mask(make(rates(clients, seed * 1000 + clients), rounds, seed).mask(rounds))
