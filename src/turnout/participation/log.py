"""A participation log: who was asked in which round, and whose update arrived."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from turnout.errors import require
from turnout.participation.inputs import array, whole
from turnout.participation.process import Participation


@dataclass(frozen=True, eq=False)
class Log:
    """A row for each client asked, sorted by round and then by client."""

    rounds: int
    clients: int
    round: NDArray[np.int64]
    client: NDArray[np.int64]
    delivered: NDArray[np.bool_]

    def __post_init__(self) -> None:
        whole("rounds", self.rounds, least=1)
        whole("clients", self.clients, least=1)
        for name, column, total in (
            ("round", self.round, self.rounds),
            ("client", self.client, self.clients),
        ):
            for value in column[(column < 0) | (column >= total)][:1].tolist():
                require(False, f"a {name} of the log", value, f"from 0 to {total - 1}")
        step = np.diff(self.round) * self.clients + np.diff(self.client)
        right = "sorted by round and client, with no pair twice"
        require(bool((step > 0).all()), "the order of the log", "another", right)

    def mask(self, cohort: bool = False) -> NDArray[np.bool_]:
        """Who delivered (or, with `cohort`, who was asked) as a [rounds, clients] table."""
        table = np.zeros((self.rounds, self.clients), dtype=bool)
        rows = slice(None) if cohort else self.delivered
        table[self.round[rows], self.client[rows]] = True
        return table


def record(process: Participation, rounds: int) -> Log:
    """What the first rounds of a process are like, as a log.

    >>> from turnout.participation.bernoulli import bernoulli
    >>> process = bernoulli(0.3, clients=5)
    >>> bool((record(process, 10).mask() == process.mask(10)).all())
    True
    """
    came = list(process.rounds(whole("rounds", rounds, least=1)))
    client = np.concatenate([attendance.cohort for attendance in came])
    round = np.repeat(np.arange(rounds), [len(attendance.cohort) for attendance in came])
    delivered = np.concatenate([np.isin(a.cohort, a.delivered, assume_unique=True) for a in came])
    return Log(rounds, process.clients, round, client, delivered)


def from_mask(mask: ArrayLike) -> Log:
    """The log of a [rounds, clients] table of 0 and 1, or of booleans.

    >>> from_mask([[0, 1], [1, 1]]).client.tolist()
    [1, 0, 1]
    """
    table = array("mask", mask, "a [rounds, clients] table of 0 and 1")
    right = "[rounds, clients] with at least 1 of each"
    require(table.ndim == 2 and table.size > 0, "shape of the mask", table.shape, right)
    for t, n in np.argwhere((table != 0) & (table != 1))[:1].tolist():
        require(False, f"mask of round {t}, client {n}", table[t, n].item(), "0 or 1")
    round, client = np.nonzero(table)
    return Log(len(table), len(table.T), round, client, np.ones(len(round), dtype=bool))


def sized(log: Log, rounds: int | None = None, clients: int | None = None) -> Log:
    """The log with more rounds or clients than show up in it."""
    return replace(
        log,
        rounds=log.rounds if rounds is None else whole("rounds", rounds, least=log.rounds),
        clients=log.clients if clients is None else whole("clients", clients, least=log.clients),
    )
