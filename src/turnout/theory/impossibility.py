"""Theorem 1 of SAFARI, played out: a world in which missing clients make learning impossible.

Two points; P(x_2) = 4ε with ε = (1−ω)/8. Two targets that differ on x_2 only, one of them drawn.
M clients hold n samples each, m of them participate, and participation hides x_2 whenever it can:
when the samples of x_2 fit into the M − m clients that stay away (no more than (1−ω)·M·n of them).
A learner that has not seen x_2 errs on it half of the time, and its risk is then 4ε > ε.
Some samples of P at the server end this.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from turnout import draws
from turnout.errors import require
from turnout.theory.bound import counts

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]

Learner = Callable[[Counts, np.random.Generator], Counts]
"""(samples seen [draws, point, label], draws of its own) → predicted label [draws, point]."""


def majority(seen: Counts, generator: np.random.Generator) -> Counts:
    """Says 0 of x_1, as both targets do, and of x_2 what its samples say: a coin if there are none."""
    ties = seen[:, 1, 0] == seen[:, 1, 1]
    coin = generator.integers(2, size=len(seen))
    rare = np.where(ties, coin, seen[:, 1, 1] > seen[:, 1, 0])
    return np.stack([np.zeros_like(rare), rare], axis=1)


@dataclass(frozen=True)
class Impossibility:
    """Risks of a learner over many draws of the construction."""

    epsilon: float
    """(1−ω)/8."""
    clients_only: Floats
    """[draws]: the risk of learning from participating clients."""
    with_server: Floats
    """[draws]: the same clients, and the server's samples beside theirs."""
    hidden: float
    """Share of draws in which x_2 fits into the missing clients; the paper needs more than 3/20."""
    expected: tuple[float, float]
    """P[risk > ε] in closed form, for a learner that knows nothing of x_2 unless it has seen it."""

    @property
    def exceeding(self) -> tuple[float, float]:
        """Share of draws with risk > ε: clients only, with the server. The claim: first > 1/20."""
        alone, helped = self.clients_only > self.epsilon, self.with_server > self.epsilon
        return float(alone.mean()), float(helped.mean())

    def __str__(self) -> str:
        repeats = len(self.clients_only)
        lines = [f"risk > (1−ω)/8 = {self.epsilon:.4g} in {repeats} draws (Theorem 1: over 5 %)"]
        rows = zip(("clients only", "with server data"), self.exceeding, self.expected, strict=True)
        for name, share, expected in rows:
            error = 196 * sqrt(max(share * (1 - share), 1 / repeats) / repeats)
            found = f"{100 * share:6.2f} % ± {error:.2f}"
            lines.append(f"  {name:17} {found}   (in closed form {100 * expected:.2f} %)")
        return "\n".join([*lines, f"  x_2 could be hidden in {100 * self.hidden:.1f} %"])


def simulate_impossibility(
    clients: int = 10,
    participating: int = 6,
    samples: int = 100,
    server_samples: int = 20,
    repeats: int = 10_000,
    seed: int = 0,
    learner: Learner = majority,
) -> Impossibility:
    """Draw the construction `repeats` times and let `learner` learn, without and with server data.

    `samples` are n, those of each client; the claim does not depend on them.

    >>> outcome = simulate_impossibility(clients=10, participating=6, samples=100)
    >>> alone, helped = outcome.exceeding
    >>> alone > 1 / 20, helped < 0.01
    (True, True)
    """
    counts(clients=clients, participating=participating, samples=samples, repeats=repeats)
    some = participating < clients
    require(some, "participating", participating, f"below the number of clients, {clients}")
    whole = server_samples >= 0 and server_samples == int(server_samples)
    require(whole, "server_samples", server_samples, "a whole number of at least 0")
    epsilon = (1 - participating / clients) / 8
    generator = draws.generator(seed, "impossibility")
    target = generator.integers(2, size=repeats)  # the label of x_2; x_1 always has label 0
    rare = generator.binomial(clients * samples, 4 * epsilon, size=repeats)
    room = (clients - participating) * samples
    hides = rare <= room
    # Where x_2 does not fit, hiding is given up, and those who participate hold a random part.
    left = clients * samples - rare
    chance = generator.hypergeometric(rare, left, participating * samples)
    visible = np.where(hides, 0, chance)
    at_server = generator.binomial(server_samples, 4 * epsilon, size=repeats)
    alone = _table(participating * samples, visible, target)
    helped = alone + _table(server_samples, at_server, target)
    first, second = (_risk(learner(seen, generator), target, epsilon) for seen in (alone, helped))
    miss = 0.5 * _at_most(clients * samples, 4 * epsilon, room)
    expected = miss, miss * (1 - 4 * epsilon) ** server_samples
    return Impossibility(epsilon, first, second, float(hides.mean()), expected)


def _table(total: int, rare: Counts, target: Counts) -> Counts:
    """Samples seen as [draws, point, label]."""
    seen = np.zeros((len(rare), 2, 2), dtype=np.int64)
    seen[:, 0, 0] = total - rare
    seen[np.arange(len(rare)), 1, target] = rare
    return seen


def _risk(predicted: Counts, target: Counts, epsilon: float) -> Floats:
    common, rare = predicted[:, 0] != 0, predicted[:, 1] != target
    risk: Floats = (1 - 4 * epsilon) * common + 4 * epsilon * rare
    return risk


def _at_most(trials: int, chance: float, limit: int) -> float:
    """P[Binomial(trials, chance) ≤ limit]."""
    # Relative to the mode and then normalised, so that nothing overflows.
    k = np.arange(trials)
    ratios = np.log((trials - k) / (k + 1)) + np.log(chance / (1 - chance))
    logs = np.concatenate([[0.0], np.cumsum(ratios)])
    mass = np.exp(logs - logs.max())
    return float(mass[: limit + 1].sum() / mass.sum())
