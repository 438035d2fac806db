"""How long a cycle is, once the spectrum has a line."""

from dataclasses import dataclass
from math import pi, sqrt

import numpy as np

from turnout.audit.lines import Peak, degrees
from turnout.audit.spectrum import Spectrum

_SAME = 0.8


@dataclass(frozen=True)
class Period:
    rounds: float
    low: float
    high: float
    """95 % interval: Cramér and Rao's bound for the frequency of a sinusoid in noise."""
    exact: bool
    """Whether clients come again after a cycle nearly for certain, rather than with other chances."""
    again: float
    """P(here a cycle later | here now), from 0 (as by chance) to 1."""


def period_of(found: Spectrum, peak: Peak) -> Period | None:
    """The period of a line; None if presence a cycle apart is not alike (a step makes lines, too)."""
    rounds = found.rounds
    excess, alike = found.again, found.alike
    most = min(rounds // 3, len(excess) - 2)
    # An exact cycle: the first lag at which presence comes back as surely as it ever does.
    if most >= 2:
        inner = excess[1 : most + 1]
        top = (inner >= excess[:most]) & (inner >= excess[2 : most + 2])
        top[0] = False  # lag 1 is where spells show
        best = float(inner[top].max(initial=-1.0))
        if best >= _SAME:
            lag = int(np.flatnonzero(top & (inner >= best - 0.02))[0]) + 1
            return Period(float(lag), float(lag), float(lag), True, float(inner[lag - 1]))
    frequency = _refine(found, peak.place)
    lag = round(1 / frequency)
    half, half_more = round(0.5 / frequency), round(1.5 / frequency)
    if half_more >= len(alike):
        half_more = half
    near = float(np.mean(alike[max(1, lag - lag // 20) : lag + lag // 20 + 1]))
    if lag >= 4 and near <= (alike[half] + alike[half_more]) / 2:
        return None
    nu = float(degrees(found)[peak.place])
    strength = max(peak.ratio - 1, 1e-6)
    # var(ω) ≥ 24σ²/(A²T³) for A cos(ωt + φ) in noise of variance σ²; a line's power over the
    # noise is A²T/4σ² + 1, and ν clients share the frequency.
    spread = sqrt(6 / (nu * strength)) / (2 * pi * rounds)
    high = 1 / max(frequency - 1.96 * spread, 1e-12)
    return Period(1 / frequency, 1 / (frequency + 1.96 * spread), high, False, float(excess[lag]))


def _refine(found: Spectrum, place: int) -> float:
    """The frequency at which the periodogram is highest near a place of the grid.

    Anywhere between the places: with many clients the interval is far narrower than the grid. The
    finer grid j/2T holds all products of presence, and from them the power at any ω is
    (1/T)·(r_0 + 2 Σ_k r_k cos ωk).
    """
    from scipy.optimize import minimize_scalar  # type: ignore[import-untyped]

    rounds = found.rounds
    products = np.fft.irfft(found.between, n=2 * rounds)[:rounds]
    lags = 2 * pi * np.arange(1, rounds)
    middle = min(2 * place, len(found.between) - 2)
    middle = min(middle + int(found.between[middle - 1 : middle + 2].argmax()) - 1, rounds - 1)
    best = minimize_scalar(
        lambda frequency: -float(products[1:] @ np.cos(lags * frequency)),
        bounds=((middle - 1) / (2 * rounds), (middle + 1) / (2 * rounds)),
        method="bounded",
        options={"xatol": 1e-4 / rounds},
    )
    return float(best.x)
