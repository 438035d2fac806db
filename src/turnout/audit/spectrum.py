"""How the presence of clients varies over time, pooled: a periodogram beside what spells explain.

Each client's presence x_n(t) has a periodogram |Σ_t x_n(t) e^{−iωt}|²/T. Summed over clients it
answers every question about time at once: flat if rounds are independent, highest at low
frequencies if clients stay for spells, with lines at 1/P and its multiples if there is a cycle of
P rounds, and with a peak at its very start if rates change for good.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_BLOCK = 4_000_000  # numbers transformed at a time
_MEMORIES = 64


@dataclass(frozen=True, eq=False)
class Spectrum:
    rounds: int
    power: Floats
    """Pooled periodogram at frequencies j/T, j = 0 … T/2."""
    expected: Floats
    """What it would be on average if every client were a Markov chain with its own λ."""
    between: Floats
    """The periodogram on the twice finer grid j/2T."""
    again: Floats
    """P(here k rounds later | here now), pooled, k = 0 … T/2."""
    chance: float
    """What `again` would be if the rounds had nothing to do with each other."""
    weight: float
    """ν: so many clients of equal weight would give sums that scatter as little."""

    @property
    def ratio(self) -> Floats:
        """1 on average, at every frequency, for Markov chains."""
        return self.power / np.maximum(self.expected, 1e-12)

    @property
    def excess(self) -> Floats:
        """`again` from 0 (as by chance) to 1 (for certain)."""
        return (self.again - self.chance) / max(1 - self.chance, 1e-12)


def spectrum(table: NDArray[np.bool_], memory: Floats) -> Spectrum:
    """Of a [clients, rounds] table; `memory` is each client's λ (see `rates.correlation`)."""
    clients, rounds = table.shape
    counts = table.sum(axis=1)
    step = max(1, _BLOCK // (2 * rounds))
    fine = np.zeros(rounds + 1)
    for start in range(0, clients, step):
        moved = np.fft.rfft(table[start : start + step].astype(np.float64), n=2 * rounds, axis=1)
        fine += (moved.real**2 + moved.imag**2).sum(axis=0)
    # The transform of length 2T gives linear, not circular, sums of products.
    together = np.fft.irfft(fine, n=2 * rounds)[: rounds // 2 + 1]
    present = np.cumsum(table.sum(axis=0))[::-1][: rounds // 2 + 1]
    again = together / np.maximum(present, 1)
    share = counts / rounds
    variance = share * (1 - share) * rounds / max(rounds - 1, 1)
    return Spectrum(
        rounds=rounds,
        power=(fine / rounds)[::2][: rounds // 2 + 1],
        expected=_expected(variance, memory, rounds),
        between=fine / rounds,
        again=again,
        chance=float((share * counts).sum() / max(counts.sum(), 1)),
        weight=float(variance.sum() ** 2 / max((variance**2).sum(), 1e-300)),
    )


def _expected(variance: Floats, memory: Floats, rounds: int) -> Floats:
    """Σ_n var_n · Σ_h (1 − |h|/T) λ_n^|h| cos ωh: exact for finite T. Clients of about the same λ
    share a transform.
    """
    total = np.zeros(rounds // 2 + 1)
    order = np.argsort(memory, kind="stable")
    lag = np.arange(rounds)
    for rows in np.array_split(order, min(_MEMORIES, len(order))):
        weight = float(variance[rows].sum())
        if weight == 0:
            continue
        common = float((memory[rows] * variance[rows]).sum() / weight)
        with np.errstate(under="ignore"):
            fading = (1 - lag / rounds) * np.power(common, lag)
        total += weight * (2 * np.fft.rfft(fading).real[: rounds // 2 + 1] - 1)
    return total
