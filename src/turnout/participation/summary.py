"""Expected against realised participation, as numbers and as a small table to print."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from turnout.card import card
from turnout.participation.inputs import whole
from turnout.participation.process import Participation

_QUANTILES = {"smallest": 0.0, "10 %": 0.1, "median": 0.5, "90 %": 0.9, "largest": 1.0}


@dataclass(frozen=True, eq=False, repr=False)
class Summary:
    """Rates are shares of the rounds, one a client; counts are clients, one a round."""

    name: str
    expected: NDArray[np.float64] | None
    realised: NDArray[np.float64]
    cohorts: NDArray[np.int64]
    delivered: NDArray[np.int64]

    def __str__(self) -> str:
        asked, arrived = int(self.cohorts.sum()), int(self.delivered.sum())
        lost = f"{1 - arrived / asked:.1%}" if asked else "none"
        return "\n".join(
            [
                f"{self.name}: {len(self.realised)} clients, {len(self.cohorts)} rounds",
                f"{'rate':<12}{'expected':>10}{'realised':>10}",
                *(f"{label:<12}{_cell(e):>10}{_cell(r):>10}" for label, e, r in self.rows()),
                f"delivered a round: {self.delivered.mean():.4g} on average, "
                f"{self.delivered.min()} to {self.delivered.max()}; "
                f"none in {int((self.delivered == 0).sum())} rounds",
                f"asked, but never arrived: {lost}",
            ]
        )

    def _repr_html_(self) -> str:
        said = {
            label: f"expected {_cell(expected)}, realised {_cell(realised)}"
            for label, expected, realised in self.rows()
        }
        return card(f"{self.name}: share of {len(self.cohorts)} rounds", said)

    __repr__ = __str__

    def rows(self) -> list[tuple[str, float | None, float]]:
        """What the table shows: label, expected, realised."""

        def show(rates: NDArray[np.float64]) -> list[float]:
            spread = np.quantile(rates, list(_QUANTILES.values())).tolist()
            return [float(rates.mean()), *spread, float((rates == 0).mean())]

        expected = [None] * 7 if self.expected is None else show(self.expected)
        labels = ["mean", *_QUANTILES, "never come"]
        return list(zip(labels, expected, show(self.realised), strict=True))


def _cell(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.4g}"


def summarise(process: Participation, rounds: int) -> Summary:
    """Run the process alone for some rounds and set its rates beside the expected ones.

    >>> from turnout.participation.cyclic import cyclic
    >>> print(summarise(cyclic([0.1, 0.2, 0.3], period=10), 100))
    cyclic: 3 clients, 100 rounds
    rate          expected  realised
    mean               0.2       0.2
    smallest           0.1       0.1
    10 %              0.12      0.12
    median             0.2       0.2
    90 %              0.28      0.28
    largest            0.3       0.3
    never come           0         0
    delivered a round: 0.6 on average, 0 to 2; none in 50 rounds
    asked, but never arrived: 0.0%
    """
    rounds = whole("rounds", rounds, least=1)
    times = np.zeros(process.clients, dtype=np.int64)
    counts = np.zeros((2, rounds), dtype=np.int64)
    for t, came in enumerate(process.rounds(rounds)):
        times[came.delivered] += 1  # no client is in it twice
        counts[:, t] = len(came.cohort), len(came.delivered)
    return Summary(process.name, process.rates, times / rounds, *counts)
