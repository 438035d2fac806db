"""Who leads where, by how much, and how sure that is: pure functions of scores."""

from collections.abc import Mapping
from statistics import fmean
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from turnout.draws import generator

Scores = Mapping[tuple[str, str], list[float]]
"""(method, pattern) → a score a seed, the more the better; seeds in the same order throughout."""

RESAMPLED = 2000
SURE = (5, 95)
"""Percentiles between which a mean rank lies when seeds are drawn again."""


class Gap(NamedTuple):
    """How far a method is behind the first of a pattern."""

    behind: float
    error: float | None
    """The standard error of that difference, over seeds that both have; None with one seed."""

    @property
    def tied(self) -> bool:
        """Is it first, or within one standard error of the first?"""
        return self.behind <= (self.error or 0.0)


class Standing(NamedTuple):
    """A method over all patterns."""

    method: str
    rank: float
    """The mean over patterns and seeds of its place; 1 is best, and equals share a place."""
    low: float
    high: float
    tied: int
    """Patterns in which it is first, or within one standard error of the first."""
    patterns: int
    """In which it was played."""
    worst: float
    """How far it is behind at most."""


def patterns_of(scores: Scores) -> list[str]:
    return list(dict.fromkeys(pattern for _, pattern in scores))


def first(scores: Scores, pattern: str) -> str:
    """The method with the best mean."""
    here = {method: values for (method, where), values in scores.items() if where == pattern}
    return max(here, key=lambda method: fmean(here[method]))


def gaps(scores: Scores) -> dict[tuple[str, str], Gap]:
    """Of every method in every pattern.

    >>> found = gaps({("a", "p"): [3.0, 5.0], ("b", "p"): [2.0, 3.0]})
    >>> found["b", "p"], found["a", "p"].tied
    (Gap(behind=1.5, error=0.5), True)
    """
    leaders = {pattern: first(scores, pattern) for pattern in patterns_of(scores)}
    found = {}
    for (method, pattern), values in scores.items():
        best = scores[leaders[pattern], pattern]
        # Seed by seed: the same data and the same absences.
        off = np.array(best) - np.array(values)
        error = float(off.std(ddof=1) / np.sqrt(len(off))) if len(off) > 1 else None
        found[method, pattern] = Gap(float(off.mean()), error)
    return found


def standings(scores: Scores) -> list[Standing]:
    """All methods, from the best mean rank to the worst.

    >>> [(s.method, s.rank, s.tied) for s in standings({("a", "p"): [1.0], ("b", "p"): [2.0]})]
    [('b', 1.0, 1), ('a', 2.0, 0)]
    """
    methods = list(dict.fromkeys(method for method, _ in scores))
    behind = gaps(scores)
    places = _places(scores, methods)
    draws = _resampled(places)
    found = []
    for row, method in enumerate(methods):
        own = [gap for (each, _), gap in behind.items() if each == method]
        rank = float(np.nanmean([np.nanmean(table[row]) for table in places if _has(table, row)]))
        low, high = np.percentile(draws[:, row], SURE)
        tied = sum(gap.tied for gap in own)
        worst = max(gap.behind for gap in own)
        found.append(Standing(method, rank, float(low), float(high), tied, len(own), worst))
    return sorted(found, key=lambda standing: standing.rank)


def _places(scores: Scores, methods: list[str]) -> list[NDArray[np.float64]]:
    """Of each pattern a table [methods, seeds] of places, NaN for those that were not played."""
    found = []
    for pattern in patterns_of(scores):
        seeds = len(scores[first(scores, pattern), pattern])
        absent = [float("nan")] * seeds
        table = np.array([scores.get((method, pattern), absent) for method in methods])
        above = (table[None] > table[:, None]).sum(1)
        equal = (table[None] == table[:, None]).sum(1)
        found.append(np.where(np.isnan(table), np.nan, above + (equal + 1) / 2))
    return found


def _has(table: NDArray[np.float64], row: int) -> bool:
    return bool(np.isfinite(table[row]).any())


def _resampled(places: list[NDArray[np.float64]]) -> NDArray[np.float64]:
    """[draws, methods]: mean ranks with each pattern's seeds drawn again, with replacement."""
    draw = generator(0, "standings")
    sums = np.zeros((RESAMPLED, len(places[0])))
    counts = np.zeros(len(places[0]))
    for table in places:
        chosen = draw.integers(table.shape[1], size=(RESAMPLED, table.shape[1]))
        means = table[:, chosen].mean(-1).T
        sums += np.nan_to_num(means)
        counts += np.isfinite(table).any(1)
    ranks: NDArray[np.float64] = sums / counts
    return ranks
