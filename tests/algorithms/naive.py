"""Pieces of reference implementations: slow, plain, and written without looking at turnout's own."""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def trace(seed: int, clients: int = 5, rounds: int = 40) -> tuple[Floats, NDArray[np.bool_]]:
    """Where each client pulls, and who comes: often, rarely, and in some rounds nobody."""
    draw = np.random.default_rng(seed)
    z = draw.normal(size=clients)
    mask = draw.random((rounds, clients)) < draw.uniform(0.1, 0.9, size=clients)
    mask[[3, 11, 12]] = False
    return z, mask


def moved(x: float, z: float, lr: float, steps: int) -> float:
    """Δ of `steps` steps of gradient descent on ½(x − z)²."""
    y = x
    for _ in range(steps):
        y -= lr * (y - z)
    return y - x


class Intervals:
    """Algorithm 2 of FedAU's paper as it is printed: all clients, in every round."""

    def __init__(self, clients: int, cutoff: float) -> None:
        self.cutoff = cutoff
        self.weight, self.count, self.open = np.ones(clients), np.zeros(clients), np.zeros(clients)

    def after(self, came: NDArray[np.bool_]) -> None:
        """A round is over."""
        self.open += 1
        for n in np.flatnonzero(came | (self.open == self.cutoff)):
            m = self.count[n]
            self.weight[n] = (m * self.weight[n] + self.open[n]) / (m + 1) if m else self.open[n]
            self.count[n] += 1
            self.open[n] = 0
