"""Quadratics with one diagonal H: the first two moments of x, exactly, round by round.

Averaging is then an affine map of x with random coefficients, coordinate by coordinate, so E x and
E x² follow a linear recursion: expectations in a bound's left side are computed, not sampled.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


class Moments(NamedTuple):
    mean: Floats  # E x_j
    square: Floats  # E x_j²

    def distance(self, z: Floats) -> float:
        """E‖x − z‖²."""
        return float((self.square - 2 * z * self.mean + z**2).sum())

    def gradient(self, curvature: Floats, z: Floats) -> float:
        """E‖H(x − z)‖²."""
        return float((curvature**2 * (self.square - 2 * z * self.mean + z**2)).sum())

    def value(self, curvature: Floats, z: Floats) -> float:
        """E ½(x − z)ᵀH(x − z)."""
        return float(0.5 * (curvature * (self.square - 2 * z * self.mean + z**2)).sum())


def at(x: Floats) -> Moments:
    return Moments(np.asarray(x, dtype=np.float64), np.asarray(x, dtype=np.float64) ** 2)


@dataclass(frozen=True)
class Step:
    """E x' = a·E x + b and E x'² = c·E x² + e·E x + g."""

    a: Floats
    b: Floats
    c: Floats
    e: Floats
    g: Floats

    def __call__(self, now: Moments) -> Moments:
        return Moments(self.a * now.mean + self.b, self.c * now.square + self.e * now.mean + self.g)

    def or_with(self, chance: float, other: "Step") -> "Step":
        """This step with probability `chance`, otherwise the other."""
        return Step(
            *(
                chance * mine + (1 - chance) * theirs
                for mine, theirs in zip(self, other, strict=True)
            )
        )

    def then(self, later: "Step") -> "Step":
        return Step(
            later.a * self.a,
            later.a * self.b + later.b,
            later.c * self.c,
            later.c * self.e + later.e * self.a,
            later.c * self.g + later.e * self.b + later.g,
        )

    def times(self, count: int) -> "Step":
        """The step `count` times, by squaring."""
        if count == 1:
            return self
        half = self.times(count // 2)
        twice = half.then(half)
        return twice.then(self) if count % 2 else twice

    def amplified(self, factor: float) -> "Step":
        """x + η(x' − x) in place of x'."""
        stay = 1 - factor
        return Step(
            stay + factor * self.a,
            factor * self.b,
            stay**2 + 2 * stay * factor * self.a + factor**2 * self.c,
            2 * stay * factor * self.b + factor**2 * self.e,
            factor**2 * self.g,
        )

    def __iter__(self):  # type: ignore[no-untyped-def]
        return iter((self.a, self.b, self.c, self.e, self.g))


class Weights(NamedTuple):
    """The random weights W of Σ W_n Δ_n: E W [N] and E W Wᵀ [N, N]."""

    mean: Floats
    second: Floats


def bernoulli_weights(p: Floats, omega: Floats, server_lr: float) -> Weights:
    """W_n = (η/N)·ω_n·1{n∈S}, independent coins."""
    scale = server_lr / len(p) * omega
    mean = scale * p
    return Weights(mean, np.outer(mean, mean) + np.diag(scale**2 * p * (1 - p)))


def uniform_weights(clients: int, come: int, per_round: int) -> Weights:
    """W_n = 1{n∈S}/m, S of m drawn from the first `come` clients."""
    here = (np.arange(clients) < come).astype(float)
    pair = (per_round - 1) / (come - 1) if come > 1 else 1.0
    second = np.outer(here, here) * pair
    np.fill_diagonal(second, here)
    return Weights(here / come, second / (come * per_round))


def client_round(
    curvature: Floats, centres: Floats, weights: Weights, lr: float, steps: int, noise: Floats
) -> Step:
    """x += Σ W_n Δ_n after local SGD; `noise` [d] is the gradient noise's variance a coordinate."""
    left = 1 - lr * curvature
    reach = 1 - left**steps
    scatter = lr**2 * noise * sum(left ** (2 * i) for i in range(steps))
    w, second = weights
    whole = w.sum()
    across = second.sum(axis=0) @ centres
    inside = np.einsum("nj,nm,mj->j", centres, second, centres)
    pull = w @ centres
    return Step(
        1 - reach * whole,
        reach * pull,
        1 - 2 * reach * whole + reach**2 * second.sum(),
        2 * (reach * pull - reach**2 * across),
        reach**2 * inside + scatter * np.trace(second),
    )


def server_round(curvature: Floats, centre: Floats, lr: float, noise: Floats) -> Step:
    """x −= η_s·(H(x − z) + noise)."""
    left = 1 - lr * curvature
    move = lr * curvature * centre
    return Step(left, move, left**2, 2 * left * move, move**2 + lr**2 * noise)


def mean_gradient(step: Step, start: Moments, rounds: int, curvature: Floats, z: Floats) -> float:
    """(1/T) Σ_{t<T} E‖H(x_t − z)‖²."""
    total, now = 0.0, start
    with np.errstate(over="ignore", invalid="ignore"):  # runs beyond the conditions may explode
        for _ in range(rounds):
            total += now.gradient(curvature, z)
            now = step(now)
    return total / rounds


@dataclass(frozen=True)
class Setting:
    """Random quadratics whose constants are known: L = 1, f's optimum at 0."""

    curvature: Floats
    centres: Floats
    noise: Floats  # [d], variances that sum to σ²
    server_noise: Floats
    start: Floats

    @property
    def divergence(self) -> float:
        return float(np.linalg.norm(self.centres * self.curvature, axis=1).max())

    @property
    def sigma(self) -> float:
        return float(np.sqrt(self.noise.sum()))


def draw(generator: np.random.Generator, clients: int | None = None, mu: float = 1e-4) -> Setting:
    """Scales spread over decades, with some constants 0: corners are where bounds are tight."""
    count = int(generator.integers(1, 8)) if clients is None else clients
    dim = int(generator.integers(1, 4))

    def scale(low: float, high: float) -> float:
        return float(10 ** generator.uniform(low, high) * (generator.random() < 0.75))

    centres = generator.normal(size=(count, dim)) * scale(-3, 1)
    noise, server_noise = np.zeros(dim), np.zeros(dim)
    noise[generator.integers(dim)] = scale(-3, 1) ** 2
    server_noise[generator.integers(dim)] = scale(-3, 1) ** 2
    curvature = 10 ** generator.uniform(np.log10(mu), 0, dim)
    curvature[0] = 1.0
    start = generator.normal(size=dim) * scale(-2, 2)
    return Setting(curvature, centres - centres.mean(axis=0), noise, server_noise, start)
