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
Presence = NDArray[np.bool_]

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
    alike: Floats
    """Correlation of presence k rounds apart, pooled, k = 0 … T/2."""
    again: Floats
    """P(here k rounds later | here now) from 0 (as by chance) to 1 (for certain), pooled."""
    weight: Floats
    """ν at every frequency: a sum over so many clients of equal power would scatter as little."""

    @property
    def ratio(self) -> Floats:
        """1 on average, at every frequency, for Markov chains."""
        return self.power / np.maximum(self.expected, 1e-12)


def spectrum(table: Presence, memory: Floats, without: Floats | None = None) -> Spectrum:
    """Of a [clients, rounds] table; `memory` is each client's λ (see `rates.correlation`).

    `without` [rounds, k], orthonormal columns, is taken out of each client's presence first; by
    default that is its mean.
    """
    clients, rounds = table.shape
    share = table.mean(axis=1)
    lags = rounds // 2 + 1
    step = max(1, _BLOCK // (2 * rounds))
    fine = np.zeros(rounds + 1)
    for start in range(0, clients, step):
        part = table[start : start + step].astype(np.float64)
        if without is None:
            part -= share[start : start + step, None]
        else:
            part -= (part @ without) @ without.T
        moved = np.fft.rfft(part, n=2 * rounds, axis=1)
        fine += (moved.real**2 + moved.imag**2).sum(axis=0)
    # The transform of length 2T gives linear, not circular, sums of products.
    products = np.fft.irfft(fine, n=2 * rounds)[:lags]
    left = rounds - np.arange(lags)
    expected, squares = _expected(share * (1 - share) * rounds / max(rounds - 1, 1), memory, rounds)
    return Spectrum(
        rounds=rounds,
        power=(fine / rounds)[::2][:lags],
        expected=expected,
        between=fine / rounds,
        alike=products / left / max(float(products[0]) / rounds, 1e-300),
        again=_again(table, share, products),
        weight=np.maximum(expected**2 / np.maximum(squares, 1e-300), 1.0),
    )


def _again(table: Presence, share: Floats, products: Floats) -> Floats:
    """Σ x(t)x(t+k) from Σ (x(t) − p)(x(t+k) − p), over Σ x(t); exact at the edges, too."""
    rounds, lags = table.shape[1], len(products)
    left = rounds - np.arange(lags)
    weighted = np.concatenate([[0.0], np.cumsum(share @ table)])
    both = products + weighted[left] + weighted[rounds] - weighted[rounds - left]
    both -= left * float((share**2).sum())
    here = np.concatenate([[0], np.cumsum(table.sum(axis=0))])[left]
    chance = float((share**2).sum() / max(share.sum(), 1e-300))
    found: Floats = (both / np.maximum(here, 1) - chance) / max(1 - chance, 1e-12)
    return found


def _expected(variance: Floats, memory: Floats, rounds: int) -> tuple[Floats, Floats]:
    """Σ_n E_n and Σ_n E_n², with E_n(ω) = var_n · Σ_h (1 − |h|/T) λ_n^|h| cos ωh.

    Exact for finite T; clients of about the same λ share a transform.
    """
    total, squares = np.zeros(rounds // 2 + 1), np.zeros(rounds // 2 + 1)
    order = np.argsort(memory, kind="stable")
    lag = np.arange(rounds)
    for rows in np.array_split(order, min(_MEMORIES, len(order))):
        weight = float(variance[rows].sum())
        if weight == 0:
            continue
        common = float((memory[rows] * variance[rows]).sum() / weight)
        with np.errstate(under="ignore"):
            fading = (1 - lag / rounds) * np.power(common, lag)
        shape = np.maximum(2 * np.fft.rfft(fading).real[: rounds // 2 + 1] - 1, 0)
        total += weight * shape
        squares += float((variance[rows] ** 2).sum()) * shape**2
    return total, squares
