"""Which samples each client uses in each local step of a round."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from turnout import draws

Counts = NDArray[np.int64]


@dataclass(frozen=True)
class Batches:
    """Mini-batches of a block of clients, those with the most steps first."""

    index: Tensor
    """[C, K, B] rows of the pool; places past a batch's size repeat its first sample."""
    sizes: Counts
    """[C, K] samples that count in each mini-batch."""
    steps: tuple[int, ...]
    """Steps of each client, never increasing."""
    keys: Tensor
    """[C, K] int64: what keyed dropout draws from."""

    def part(self, rows: slice) -> "Batches":
        """The same for some of the clients, no wider than they need."""
        steps = self.steps[rows]
        sizes = self.sizes[rows, : steps[0]]
        index = self.index[rows, : steps[0], : int(sizes.max())]
        return Batches(index, sizes, steps, self.keys[rows, : steps[0]])


def joined(some: Sequence[Batches], shifts: Sequence[int]) -> tuple[Batches, list[Tensor]]:
    """One block of several, and where in it the clients of each are.

    Rows of the pool move up by each block's `shifts`, where pools are put one behind the other.

    >>> one = draw([(0, 3)], np.array([1]), 2, 0, 0, [0])
    >>> two = draw([(0, 4), (4, 6)], np.array([2, 1]), 2, 0, 0, [0, 1])
    >>> joined([one, two], [0, 3])[1]
    [tensor([1]), tensor([0, 2])]
    """
    counts = np.concatenate([each.steps for each in some])
    steps = int(counts.max())
    width = max(each.index.shape[2] for each in some)
    index = torch.zeros(len(counts), steps, width, dtype=torch.int64)
    sizes = np.ones((len(counts), steps), dtype=np.int64)
    keys = torch.zeros(len(counts), steps, dtype=torch.int64)
    first = 0
    for each, shift in zip(some, shifts, strict=True):
        rows, (count, own, wide) = slice(first, first + len(each.steps)), each.index.shape
        # Places past a batch's size repeat its first sample, as ever.
        index[rows, :own] = shift + each.index[:, :, :1]
        index[rows, :own, :wide] = shift + each.index
        sizes[rows, :own], keys[rows, :own] = each.sizes, each.keys
        first += count
    places = np.argsort(-counts, kind="stable")
    whole = Batches(index, sizes, tuple(counts.tolist()), keys)
    if (counts != steps).any():
        order = torch.from_numpy(places)
        ordered = tuple(counts[places].tolist())
        whole = Batches(index[order], sizes[places], ordered, keys[order])
    cuts = np.cumsum([len(each.steps) for each in some])[:-1]
    return whole, [torch.from_numpy(part) for part in np.split(np.argsort(places), cuts)]


def count_steps(
    samples: Counts, steps: int | None, epochs: int | None, batch_size: int | None
) -> Counts:
    """Local steps of clients with so many samples.

    >>> count_steps(np.array([6000, 10]), None, 1, 64)
    array([94,  1])
    """
    if steps is not None:
        return np.full(len(samples), steps)
    batches = np.ones_like(samples) if batch_size is None else -(-samples // batch_size)
    return (epochs or 1) * batches


def draw(
    samples: Sequence[tuple[int, int]],
    counts: Counts,
    batch_size: int | None,
    seed: int,
    round: int,
    clients: Sequence[int],
    purpose: str = "batches",
) -> Batches:
    """Mini-batches without replacement for clients whose samples are these ranges of the pool.

    Each pass over a client's data is a fresh permutation of it, cut into mini-batches, the last of
    which may be smaller. `counts` are the local steps and must never increase.
    """
    sizes = np.ones((len(counts), int(counts[0])), dtype=np.int64)
    wide = max(stop - start for start, stop in samples)
    width = wide if batch_size is None else min(batch_size, wide)
    index = np.zeros((*sizes.shape, width), dtype=np.int64)
    keys = np.zeros(sizes.shape, dtype=np.int64)
    for row, ((start, stop), steps, client) in enumerate(
        zip(samples, counts.tolist(), clients, strict=True)
    ):
        generator = draws.generator(seed, purpose, round, client)
        held = stop - start
        batch = held if batch_size is None else min(batch_size, held)
        per_pass = -(-held // batch)
        passes, last = -(-steps // per_pass), (per_pass - 1) * batch
        order = np.empty((passes, per_pass * batch), dtype=np.int64)
        for p in range(passes):
            order[p, :held] = generator.permutation(held)
        sizes[row, :steps] = batch
        if held < last + batch:
            # The tail of a smaller last batch repeats that batch's first sample: a valid row that
            # does not count.
            order[:, held:] = order[:, last, None]
            sizes[row, per_pass - 1 : steps : per_pass] = held - last
        np.add(order.reshape(-1, batch)[:steps], start, out=index[row, :steps, :batch])
        if batch < width:
            index[row, :steps, batch:] = index[row, :steps, :1]
        keys[row, :steps] = generator.integers(2**63, size=steps)
    return Batches(
        torch.from_numpy(index), sizes, tuple(int(s) for s in counts), torch.from_numpy(keys)
    )
