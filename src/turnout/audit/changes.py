"""When did rates change, and was it a step or a drift?"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


class Change(NamedTuple):
    round: int
    """Where a step fits best: the first round of the new rates."""
    step: float
    """How much of the variation a step there explains …"""
    drift: float
    """… and how much a straight line does, for each client."""
    moved: float
    """Mean |rate after − rate before|, over clients."""

    @property
    def kind(self) -> str:
        return "step" if self.step >= self.drift else "drift"


def trend(rounds: int, steps: list[int]) -> Floats:
    """Orthonormal [rounds, k]: a cubic and the given steps, all that changes slowly or at once."""
    t = np.linspace(-1, 1, rounds)
    columns = [t**power for power in range(4)]
    columns += [(np.arange(rounds) >= step).astype(np.float64) for step in steps]
    basis: Floats = np.linalg.qr(np.stack(columns, axis=1))[0]
    return basis


def change(table: NDArray[np.bool_]) -> Change:
    """The best step and the best line through the [clients, rounds] presence of all clients.

    >>> table = np.repeat([[True, False], [False, True]], 10, axis=1)
    >>> change(table).round, change(table).kind, change(table).moved
    (10, 'step', 1.0)
    """
    clients, rounds = table.shape
    t = np.arange(1, rounds)
    gain, linear, slope = np.zeros(rounds - 1), 0.0, np.arange(rounds) - (rounds - 1) / 2
    block = max(1, 4_000_000 // rounds)
    for start in range(0, clients, block):
        part = table[start : start + block].astype(np.float64)
        part -= part.mean(axis=1, keepdims=True)
        sums = np.cumsum(part, axis=1)[:, :-1]
        # What a step at t takes from the sum of squares: T·S_t²/(t(T − t)).
        gain += np.square(sums).sum(axis=0) * rounds / (t * (rounds - t))
        linear += float(np.square(part @ slope).sum() / np.square(slope).sum())
    edge = max(1, rounds // 50)  # at the edges a few rounds explain a lot by chance
    inner = slice(edge - 1, rounds - edge)
    place = int(gain[inner].argmax()) + edge
    moved = np.abs(table[:, place:].mean(axis=1) - table[:, :place].mean(axis=1)).mean()
    return Change(place, float(gain[place - 1]), linear, float(moved))
