"""The one form in which the audit holds a log: who delivered in which rounds, sparse and sorted."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from turnout.errors import require
from turnout.participation.log import Log

Rows = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class History:
    """Client n took part in the rounds `round[bounds[n]:bounds[n + 1]]`, in increasing order."""

    clients: int
    rounds: int
    bounds: Rows
    round: NDArray[np.int32]
    asked: Rows | None = None
    """How often each client was asked; None where only deliveries are known."""
    names: Sequence[str] | None = None
    """None: clients go by their numbers."""
    listed: NDArray[np.bool_] | None = None
    """Whether the log has any entry of a client, perhaps one that no round sees; None: the same as
    to have taken part."""
    round_s: float | None = None
    """Length of a round in seconds; None where the log counts rounds."""
    mends: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    """What had to be mended in the log, and how often."""

    @property
    def counts(self) -> Rows:
        """Rounds in which each client took part."""
        return np.diff(self.bounds)

    @property
    def client(self) -> NDArray[np.int32]:
        """The client of every entry of `round`."""
        return np.repeat(np.arange(self.clients, dtype=np.int32), self.counts)

    @property
    def per_round(self) -> Rows:
        """How many took part in each round."""
        return np.bincount(self.round, minlength=self.rounds)

    def of(self, client: int) -> NDArray[np.int32]:
        return self.round[self.bounds[client] : self.bounds[client + 1]]

    def name(self, client: int) -> str:
        known = self.names is not None and client < len(self.names)
        return self.names[client] if self.names is not None and known else str(client)

    def dense(self, rows: Rows) -> NDArray[np.bool_]:
        """[rows, rounds] for a few of the clients."""
        table = np.zeros((len(rows), self.rounds), dtype=bool)
        for place, client in enumerate(rows.tolist()):
            table[place, self.of(client)] = True
        return table


def from_pairs(
    client: ArrayLike,
    round: ArrayLike,
    clients: int,
    rounds: int,
    *,
    asked: Rows | None = None,
    names: Sequence[str] | None = None,
    listed: NDArray[np.bool_] | None = None,
    round_s: float | None = None,
    mends: Mapping[str, int] | None = None,
) -> History:
    """The history of (client, round) pairs in any order; a pair that comes twice counts once.

    >>> history = from_pairs([1, 0, 1], [0, 2, 1], clients=3, rounds=4)
    >>> history.counts.tolist(), history.of(1).tolist()
    ([1, 2, 0], [0, 1])
    """
    require(clients >= 1, "the number of clients", clients, "at least 1")
    require(rounds >= 1, "the number of rounds", rounds, "at least 1")
    # One integer a pair: sorting it sorts by client and then by round.
    key = np.asarray(client, dtype=np.int64) * rounds + np.asarray(round, dtype=np.int64)
    if len(key) and not bool((key[1:] > key[:-1]).all()):
        key.sort()
        key = key[np.concatenate([[True], key[1:] != key[:-1]])]
    bounds = np.searchsorted(key, np.arange(clients + 1, dtype=np.int64) * rounds)
    when = (key % rounds).astype(np.int32)
    return History(clients, rounds, bounds, when, asked, names, listed, round_s, dict(mends or {}))


def with_unseen(history: History, names: Sequence[str]) -> History:
    """With more clients, of which the log has no entry; those without a name yet are named first.

    >>> with_unseen(from_mask([[1], [0]]), ["1"]).counts.tolist()
    [1, 0]
    """
    nameless = 0 if history.names is None else history.clients - len(history.names)
    more = max(0, len(names) - nameless)
    mends = dict(history.mends)
    mends["clients without any entry, known from the class counts"] = len(names)
    return replace(
        history,
        clients=history.clients + more,
        bounds=np.concatenate([history.bounds, np.full(more, history.bounds[-1])]),
        asked=_padded(history.asked, more),
        names=None if history.names is None else [*history.names, *names],
        listed=_padded(history.listed, more),
        mends=mends,
    )


def _padded(values: NDArray[Any] | None, more: int) -> NDArray[Any] | None:
    return None if values is None else np.concatenate([values, np.zeros(more, values.dtype)])


def from_mask(mask: ArrayLike) -> History:
    """The history of a [rounds, clients] table."""
    table = np.asarray(mask, dtype=bool)
    client, round = np.nonzero(table.T)
    return from_pairs(client, round, table.shape[1], table.shape[0])


def to_log(history: History, rows: Rows | None = None) -> Log:
    """As a log that can be replayed; `rows` chooses clients, who become 0, 1, 2, … in that order.

    >>> to_log(from_mask([[1, 0], [1, 1]]), np.array([1, 0])).mask().astype(int).tolist()
    [[0, 1], [1, 1]]
    """
    chosen = np.arange(history.clients) if rows is None else rows
    counts = history.counts[chosen]
    parts = [history.of(client) for client in chosen.tolist()]
    round = np.concatenate([np.empty(0, dtype=np.int32), *parts]).astype(np.int64)
    client = np.repeat(np.arange(len(chosen)), counts)
    order = np.lexsort((client, round))
    delivered = np.ones(len(order), dtype=bool)
    return Log(history.rounds, len(chosen), round[order], client[order], delivered)
