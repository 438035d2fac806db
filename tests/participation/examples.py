"""Small instances of every registered process, and of compositions of them."""

from collections.abc import Callable
from pathlib import Path

import numpy as np

from turnout.participation import (
    Participation,
    always,
    arrivals,
    bernoulli,
    cyclic,
    excluded,
    given,
    grouped,
    lossy,
    markov,
    regularised,
    sampled,
    sine_drift,
    step_drift,
    trace,
    uniform,
)

P = [0.0, 0.02, 0.1, 0.5, 0.9, 1.0, 0.3]

TRACE = """client,available_from_s,available_until_s
0,0,50
0,50,90
2,30,60
4,80,100
4,0,20
5,0,100
"""

ARRIVALS = """client,started_s,took_s
4,2,7
0,0,4
1,1,3
0,4,5
2,9,0.5
1,4,8
"""

MASK = [[1, 0, 1], [0, 0, 0], [1, 1, 1], [0, 1, 0]]


def csv(folder: Path, text: str = TRACE, name: str = "trace.csv") -> Path:
    path = folder / name
    path.write_text(text)
    return path


Build = Callable[[Path, int], Participation]  # of a scratch folder and a seed

SEEDED: dict[str, Build] = {
    "uniform": lambda _, seed: uniform(12, 4, seed=seed),
    "bernoulli": lambda _, seed: bernoulli(P, seed=seed),
    "markov": lambda _, seed: markov(P, on=0.3, seed=seed),
    "cyclic": lambda _, seed: cyclic(P, period=10, seed=seed),
    "grouped (phase)": lambda _, seed: grouped(10, groups=3, length=20, phase=True, seed=seed),
    "regularised": lambda _, seed: regularised(10, period=4, seed=seed),
    "regularised (reshuffle)": lambda _, seed: regularised(10, 4, reshuffle=True, seed=seed),
    "sampled": lambda _, seed: sampled(grouped(10, groups=2, length=4), 2, seed=seed),
    "sampled (bernoulli)": lambda _, seed: sampled(bernoulli(0.5, 12, seed=seed), 3, seed=seed),
    "sampled (lossy, sampled)": lambda _, seed: sampled(
        lossy(sampled(always(12), 6, seed=seed), 0.5, seed=seed), 3, seed=seed
    ),
    "excluded": lambda _, seed: excluded(uniform(10, 4, seed=seed), absent=3, seed=seed),
    "excluded (markov)": lambda _, seed: excluded(markov(P, seed=seed), absent=[1, 5]),
    "excluded (lossy, sampled)": lambda _, seed: excluded(
        lossy(sampled(markov(0.6, 12, seed=seed), 3, seed=seed), 0.4, seed=seed), absent=4
    ),
    "lossy": lambda _, seed: lossy(bernoulli(P, seed=seed), loss=0.3, seed=seed),
    "lossy (cyclic)": lambda _, seed: lossy(cyclic(P, period=9), loss=P, seed=seed),
    "sine_drift": lambda _, seed: sine_drift(P, amplitude=0.8, period=12, seed=seed),
    "sine_drift (spread)": lambda _, seed: sine_drift(P, period=12, spread=True, seed=seed),
    "step_drift": lambda _, seed: step_drift(P, at=15, seed=seed),
}
"""Those whose mask depends on the seed."""

FIXED: dict[str, Build] = {
    "always": lambda _, __: always(5),
    "grouped": lambda _, __: grouped(7, groups=3, length=2),
    "trace": lambda folder, _: trace(csv(folder), round_s=7.0, clients=8),
    "trace (whole round)": lambda folder, _: trace(csv(folder), round_s=7, whole_round=True),
    "arrivals": lambda folder, _: arrivals(csv(folder, ARRIVALS, "arrivals.csv"), clients=6),
    "lossy (arrivals)": lambda folder, _: lossy(
        arrivals(csv(folder, ARRIVALS, "arrivals.csv")), loss=[0, 1, 0, 0, 0]
    ),
    "given": lambda _, __: given(MASK, repeat=True),
    "given (array)": lambda _, __: given(np.eye(40, dtype=bool)),
    "excluded (given)": lambda _, __: excluded(given(MASK, repeat=True), absent=[0]),
}

EVERY: dict[str, Build] = SEEDED | FIXED


def z_scores(counts: np.ndarray, trials: int | np.ndarray, p: float | np.ndarray) -> np.ndarray:
    """How many standard deviations binomial counts are from what p makes of the trials."""
    return (counts - trials * np.asarray(p)) / np.sqrt(trials * np.asarray(p) * (1 - np.asarray(p)))
