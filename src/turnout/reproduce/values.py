"""The numbers that a record comes down to, in the units that the papers print."""

from collections.abc import Callable
from statistics import mean, stdev
from typing import NamedTuple

import numpy as np

from turnout.reproduce.play import Record

Take = Callable[[Record, int], float]
"""(record, rounds at the end to average over) → value"""


class Measured(NamedTuple):
    """A value over seeds, which prints itself.

    >>> print(Measured(57.051, 0.0402, 5), Measured(0.01634, 0.0021, 3, decimals=4))
    57.05 ±0.04 0.0163 ±0.0021
    """

    mean: float
    std: float | None
    """Of the sample; None with one seed."""
    seeds: int
    decimals: int = 2
    """Two are enough for percents and points."""

    def __str__(self) -> str:
        spread = "" if self.std is None else f" ±{self.std:.{self.decimals}f}"
        return f"{self.mean:.{self.decimals}f}{spread}"


def measured(values: list[float], decimals: int = 2) -> Measured:
    spread = stdev(values) if len(values) > 1 else None
    return Measured(mean(values), spread, len(values), decimals)


def curve(record: Record, metric: str) -> tuple[list[int], list[float]]:
    points = [(m["round"], m[metric]) for m in record["metrics"] if m.get(metric) is not None]
    return [r for r, _ in points], [v for _, v in points]


def _final(record: Record, tail: int) -> float:
    return 100 * curve(record, "test_accuracy")[1][-1]


def _best(record: Record, tail: int) -> float:
    return 100 * max(curve(record, "test_accuracy")[1])


def _tail(record: Record, tail: int) -> float:
    rounds, values = curve(record, "test_accuracy")
    return 100 * mean(v for r, v in zip(rounds, values, strict=True) if r > rounds[-1] - tail)


def _train_loss(record: Record, tail: int) -> float:
    return curve(record, "train_loss")[1][-1]


def _over_clients(column: str, scale: float) -> Take:
    """The standard deviation over clients, after the last round."""
    return lambda record, tail: float(scale * np.std([row[column] for row in record["clients"]]))


VALUES: dict[str, Take] = {
    "final": _final,
    "best": _best,
    "tail": _tail,
    "train_loss": _train_loss,
    "spread_loss": _over_clients("loss", 1),
    "spread_train": _over_clients("accuracy", 100),
    "spread_test": _over_clients("test_accuracy", 100),
}
DECIMALS = {"train_loss": 4, "spread_loss": 4}
"""Where two are too few."""
ALWAYS = ("final", "best", "tail")
"""What is reported where the paper does not say which it prints."""


def value(name: str, record: Record, tail: int) -> float:
    """A model that is no longer finite guesses: its accuracy is that of chance."""
    if record["status"] == "diverged" and name in ALWAYS:
        return 100 / len(record["classes"])
    return VALUES[name](record, tail)
