"""Do a few frequencies stand out of the spectrum? The tests behind "cyclic", "daily" and "drift"."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from turnout.audit.spectrum import Spectrum

Floats = NDArray[np.float64]

_REACH = 40
_BLOCK = 50_000
_MOST = 400.0
_SLOW = 31
_LEAST_CYCLES = 3


@dataclass(frozen=True)
class Peak:
    """A frequency j/T that may stand out."""

    place: int
    """j"""
    ratio: float
    """Its power over that of its surroundings."""
    p: float
    """How likely so much is where nothing stands out, over all places tested."""


def degrees(found: Spectrum) -> Floats:
    """ν at every frequency: from independent clients, less if the scatter shows them to be together.

    It is never above 400, as no model of the surroundings is good to 5 %.
    """
    ratio, weight = found.ratio[3:], found.weight
    together = 1.0
    if len(ratio) >= 16 and bool((ratio > 0).all()):
        rough = np.diff(np.log(ratio))  # of neighbours: slow misfits do not count as scatter
        scatter = 1.4826 * float(np.median(np.abs(rough - np.median(rough)))) / np.sqrt(2)
        together = min(1.0, 1 / (max(scatter, 1e-6) ** 2 * float(np.median(weight))))
    return np.clip(weight * together, 1.0, _MOST)


def surroundings(ratio: Floats, nu: Floats) -> tuple[Floats, Floats]:
    """Mean level around each place, from the median of others near it, and how many they are.

    Near is up to 40 places, or half of the way to 0 (at least 4), and not next to it.
    """
    last, places = len(ratio) - 1, np.arange(len(ratio))
    reach = np.clip(places // 2, 4, _REACH)
    low, high = np.maximum(1, places - reach), np.minimum(last, places + reach)
    number = np.maximum(places - 1 - low, 0) + np.maximum(high - places - 1, 0)
    middle = np.ones(len(ratio))
    inner = places[(reach == _REACH) & (places > _REACH) & (places + _REACH <= last)]
    away = np.r_[0 : _REACH - 1, _REACH + 2 : 2 * _REACH + 1]
    for block in np.array_split(inner, len(inner) // _BLOCK + 1):
        middle[block] = np.median(ratio[(block - _REACH)[:, None] + away], axis=1)
    for place in np.setdiff1d(places, inner).tolist():
        before = ratio[low[place] : max(low[place], place - 1)]
        around = np.concatenate([before, ratio[place + 2 : high[place] + 1]])
        middle[place] = np.median(around) if len(around) else 1.0
    # The median of a Gamma(ν) variable lies below its mean (Wilson and Hilferty).
    return np.maximum(middle / (1 - 1 / (9 * nu)) ** 3, 1e-3), np.maximum(number, 1)


def line(found: Spectrum) -> Peak | None:
    """The lowest frequency among those that clearly stand out, of at least three cycles.

    Its power over that of its surroundings has an F distribution if there is no line; the level is
    Bonferroni's over all frequencies.
    """
    nu, ratio = degrees(found), found.ratio
    places = np.arange(_LEAST_CYCLES, len(ratio))
    if not len(places):
        return None
    level, others = (values[places] for values in surroundings(ratio, nu))
    over = ratio[places] / level
    chance = np.minimum(1, tail(over, nu[places], 0.63 * nu[places] * others) * len(places))
    excess = np.maximum(found.power[places] - level * found.expected[places], 0)
    gain = np.where(chance <= max(0.01, float(chance.min())), excess, 0)
    best = int(np.flatnonzero(gain >= 0.5 * gain.max())[0])
    return Peak(int(places[best]), float(over[best]), float(chance[best]))


def slow(found: Spectrum, avoid: int | None = None) -> Peak | None:
    """Whether one or two cycles over the whole log stand out: rates that change for good.

    They are held against a line in log power and log frequency through the frequencies after them
    (multiples of `avoid`, a cycle's, left out): spells that are not quite Markov's bend the ratio
    there, and should not pass for changes. The line may rise towards 0 no more than as 1/j, as a
    step's own power, 1/j², would else hide the step.
    """
    last = min(_SLOW, len(found.ratio))
    places = np.array([j for j in range(3, last) if not avoid or j % avoid], dtype=int)
    if len(places) < 4:
        return None
    nu = degrees(found)
    # log of a mean of ν exponentials: mean −1/(2ν), variance 1/ν, about.
    logs = np.log(np.maximum(found.ratio[places], 1e-6)) + 1 / (2 * nu[places])
    x = np.log(places)
    apart, spread = x - x.mean(), float(np.square(x - x.mean()).sum())
    slope = float(np.clip((apart @ logs) / spread, -1, 0))
    to = np.log(np.array([1.0, 2.0])) - x.mean()
    expected = np.exp(logs.mean() + slope * to)
    over = found.ratio[1:3] / expected
    variance = (1 / len(places) + to**2 / spread) / float(np.median(nu[places]))
    chance = np.minimum(1, 2 * tail(over, nu[1:3], 1 / variance))
    best = int(chance.argmin() if chance.min() > 0 else over.argmax())
    return Peak(best + 1, float(over[best]), float(chance[best]))


def tail(over: Floats, nu: Floats, beside: Floats) -> Floats:
    """P(a ratio is so large): F, of ν exponentials over a level known as well as from `beside`."""
    from scipy.special import fdtrc  # type: ignore[import-untyped]

    found: Floats = fdtrc(2 * nu, np.maximum(2 * beside, 2), over)
    return found
