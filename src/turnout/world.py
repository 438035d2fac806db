"""A world: who has which data, who shows up when, and what the server itself holds."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from turnout.card import card
from turnout.data.pool import Partition, Pool
from turnout.errors import require
from turnout.participation.process import Participation
from turnout.wording import between, counted


@dataclass(frozen=True)
class World:
    """Everything that an algorithm cannot choose.

    `train` is arranged so that client i's samples are rows `offsets[i]:offsets[i + 1]`;
    `World.build` does that from a partition.
    """

    train: Pool
    offsets: NDArray[np.int64]  # [clients + 1]
    test: Pool
    participation: Participation
    server: Pool | None = None
    """The server's auxiliary data, for methods with assistance."""
    shares: NDArray[np.float64] | None = None
    """Objective f = Σ q_n F_n; None means q_n = 1/N."""

    @staticmethod
    def build(
        train: Pool,
        partition: Partition,
        test: Pool,
        participation: Participation,
        server: Pool | None = None,
        shares: NDArray[np.float64] | None = None,
    ) -> "World":
        require(
            partition.clients == participation.clients,
            "participation.clients",
            participation.clients,
            f"the number of clients in the partition, {partition.clients}",
        )
        empty = np.flatnonzero(partition.sizes == 0)
        require(
            not len(empty), "samples of client " + ", ".join(map(str, empty[:5])), 0, "at least 1"
        )
        return World(
            train.take(partition.order), partition.offsets, test, participation, server, shares
        )

    def __repr__(self) -> str:
        return f"<world: {'; '.join(self._said().values())}>"

    def _repr_html_(self) -> str:
        return card("World", self._said())

    def _said(self) -> dict[str, str]:
        sizes = np.diff(self.offsets)
        held = between(sizes.min(), sizes.max())
        said = {
            "clients": f"{counted(self.clients, 'client')} with {held} samples",
            "training data": repr(self.train).strip("<>"),
            "test data": counted(len(self.test), "test sample"),
            "participation": repr(self.participation).strip("<>"),
        }
        if self.server is not None:
            said["server"] = f"{counted(len(self.server), 'sample')} at the server"
        return said

    @property
    def clients(self) -> int:
        return len(self.offsets) - 1
