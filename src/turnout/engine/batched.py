"""The batched engine: a cohort as one block a worker, each step one set of operations."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property, partial

import numpy as np
import torch
from numpy.typing import NDArray

from turnout.algorithm import Algorithm, Rows
from turnout.engine.contract import Block, Recall, Task, Training
from turnout.engine.crew import Spares, in_order, undisturbed
from turnout.engine.dense import Dense, layers_of
from turnout.engine.vmapped import Vmapped, compiled, gradients_of
from turnout.errors import require
from turnout.round import Broadcast, Work, client_step

BLOCK_BYTES = 1 << 28
"""A block's vectors may take so much: parameters, gradients, and what rules and memory add."""
_VECTORS = 6  # of them there are about so many
WORTH = 1 << 26
"""A local step of the cohort with fewer products than this (some milliseconds of a core) is not
shared out: its operations are so short that threads wait for Python's lock more than they work."""


@dataclass(frozen=True)
class Batched:
    """Blocks of clients, fully connected models by hand and all others by `vmap`."""

    training: Training
    workers: int = field(default_factory=torch.get_num_threads)
    compiled: bool = False
    """Whether it is `vmap` compiled, by hand or not, and then with one worker."""

    def __post_init__(self) -> None:
        require(self.workers >= 1, "workers", self.workers, "at least 1")
        one = not self.compiled or self.workers == 1
        require(one, "workers", self.workers, "1 for a compiled engine, which has threads within")

    def train(
        self, algorithm: Algorithm, broadcast: Broadcast, rows: Rows, recall: Recall
    ) -> Iterator[Block]:
        steps = self.training.steps(algorithm.local, rows)
        places = np.argsort(-steps, kind="stable")  # those with the most steps first
        workers = self.workers if self.products(algorithm, rows) >= WORTH else 1

        def block(some: NDArray[np.int64]) -> Block:
            members = rows[some]
            task = self.training.clients(algorithm.local, members, broadcast.round)
            part = broadcast.part(some.tolist())
            with self._works.one() as work:
                return Block(members, *client_step(algorithm, part, work(task), recall(members)))

        blocks = (partial(block, part) for part in self._split(places, steps, workers))
        with undisturbed(self.workers):
            yield from in_order(blocks, workers)

    def work(self, task: Task) -> Work:
        return self._own(task)

    @cached_property
    def _works(self) -> Spares[Callable[[Task], Work]]:
        return Spares(self._way)

    @cached_property
    def _own(self) -> Callable[[Task], Work]:
        return self._way()

    def _way(self) -> Callable[[Task], Work]:
        layers = None if self.compiled else layers_of(self.training)
        if layers is not None:
            return partial(Dense, layers=layers)
        gradients = gradients_of(self.training)
        return partial(Vmapped, gradients=compiled(gradients) if self.compiled else gradients)

    def products(self, algorithm: Algorithm, rows: Rows) -> int:
        """Of a local step, about: of every parameter with every sample of the mini-batches."""
        held = int((self.training.offsets[rows + 1] - self.training.offsets[rows]).sum())
        batch = algorithm.local.batch_size
        samples = held if batch is None else min(held, batch * len(rows))
        return samples * self.training.layout.size

    def _split(
        self, places: NDArray[np.int64], steps: NDArray[np.int64], workers: int
    ) -> list[NDArray[np.int64]]:
        """As many blocks as workers, of about as many steps, or more where memory asks for it."""
        size = self.training.layout.size * self.training.dtype.itemsize * _VECTORS
        most = max(1, BLOCK_BYTES // size)
        count = min(len(places), max(workers, -(-len(places) // most)))
        done = np.cumsum(steps[places])
        cuts = np.searchsorted(done, done[-1] * np.arange(1, count) / count, side="left") + 1
        return [part for part in np.split(places, cuts) if len(part)]
