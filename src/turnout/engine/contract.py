"""What every engine is given and what it must do."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from turnout import draws
from turnout.algorithm import Algorithm, Rows
from turnout.data.augment import Augmentation
from turnout.data.pool import Pool
from turnout.engine import batches
from turnout.engine.batches import Batches
from turnout.flat import Layout
from turnout.models import Model, key_buffers
from turnout.parts.local import Local, Tensors
from turnout.round import Broadcast, Upload, Work


@dataclass(frozen=True)
class Training:
    """The data and the model that engines train, and the seed of their draws."""

    model: Model
    pool: Pool
    offsets: NDArray[np.int64]
    """Client i's samples are rows offsets[i]:offsets[i + 1] of the pool."""
    seed: int
    dtype: torch.dtype = torch.float32
    augment: Augmentation | None = None

    @cached_property
    def layout(self) -> Layout:
        return Layout.of(self.model.module)

    @cached_property
    def dropout_keys(self) -> list[str]:
        return key_buffers(self.model.module)

    def steps(self, local: Local, rows: Rows) -> NDArray[np.int64]:
        """Local steps of each of these clients."""
        samples = self.offsets[rows + 1] - self.offsets[rows]
        return batches.count_steps(samples, local.steps, local.epochs, local.batch_size)

    def clients(self, local: Local, rows: Rows, round: int) -> "Task":
        """The mini-batches of these clients, whose steps must never increase along the block."""
        ranges = [(int(self.offsets[r]), int(self.offsets[r + 1])) for r in rows]
        drawn = batches.draw(
            ranges, self.steps(local, rows), local.batch_size, self.seed, round, rows.tolist()
        )
        return Task(self, self.pool, drawn, round, rows)

    def server(self, local: Local, pool: Pool, round: int) -> "Task":
        """The mini-batches of the server's own training in a round, as a block of one."""
        size = np.array([len(pool)])
        steps = batches.count_steps(size, local.steps, local.epochs, local.batch_size)
        drawn = batches.draw(
            [(0, len(pool))], steps, local.batch_size, self.seed, round, [0], "server batches"
        )
        return Task(self, pool, drawn, round, np.zeros(1, dtype=np.int64), "server augment")


@dataclass(frozen=True)
class Task:
    """The mini-batches of one block in one round, gathered when they are asked for."""

    training: Training
    pool: Pool
    batches: Batches
    round: int
    rows: Rows
    purpose: str = "augment"
    _moves: dict[int, NDArray[np.int64]] = field(default_factory=dict, repr=False)

    def sample(self, rows: slice, step: int) -> tuple[Tensor, Tensor]:
        """Inputs [C, B, …] and targets [C, B, …] of these rows' mini-batch number `step`."""
        index, augment = self.batches.index[rows, step], self.training.augment
        if augment is None:
            return self.pool.gather(index, self.training.dtype)
        drawn = [self._moves_of(row, augment)[step] for row in range(len(self.rows))[rows]]
        moves = torch.from_numpy(np.concatenate(drawn))
        # Raw pixels are moved, so that what comes in from outside is black and not the mean.
        return self.pool.gather(index, self.training.dtype, lambda raw: augment.apply(raw, moves))

    def _moves_of(self, row: int, augment: Augmentation) -> NDArray[np.int64]:
        # Drawn once a client and round, and for the client's own sizes, so that neither the order
        # of work nor the company in a block changes a crop.
        if row not in self._moves:
            steps, width = self.batches.steps[row], int(self.batches.sizes[row].max())
            generator = draws.generator(
                self.training.seed, self.purpose, self.round, int(self.rows[row])
            )
            drawn = augment.draw(generator, (steps, width))
            padded = np.zeros((*self.batches.index.shape[1:], drawn.shape[-1]), dtype=np.int64)
            padded[:steps, :width] = drawn
            self._moves[row] = padded
        return self._moves[row]


class Block(NamedTuple):
    """What an engine yields for some of the cohort: ready for `absorb`, and what clients keep."""

    rows: Rows
    upload: Upload
    kept: Tensors


Recall = Callable[[Rows], Tensors]
"""What these clients have kept since their last delivered round."""


class Engine(Protocol):
    """Local training of a cohort, in blocks that come in a fixed order."""

    @property
    def workers(self) -> int:
        """Threads that train side by side; 1 is the caller's own."""
        ...

    def train(
        self, algorithm: Algorithm, broadcast: Broadcast, rows: Rows, recall: Recall
    ) -> Iterator[Block]:
        """Train these clients from `broadcast` (whose rows are theirs, in this order)."""
        ...

    def work(self, task: Task) -> Work:
        """Gradients for one block; the server's own data is a block of one."""
        ...
