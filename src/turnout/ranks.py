"""More than one process at one run: under `torchrun` each rank trains a part of every cohort.

All ranks play the same rounds by the same draws, so each knows by itself who comes; the server's state
is the same on all. What a rank has to itself is its clients: their training, and the vectors that are
stored for each of them. A round's sums over clients are the only thing that has to be exchanged.
"""

import atexit
import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import torch
import torch.distributed as dist
from numpy.typing import NDArray
from torch import Tensor

from turnout.algorithm import Rows, Table, Zeros

T = TypeVar("T")


@dataclass(frozen=True)
class Ranks:
    """This process and its peers; with a count of 1 there are none, and nothing is exchanged.

    >>> Ranks(1, 2).part(np.array([0, 2, 3, 8]), owned=True)
    [2]
    >>> Ranks(1, 2).part(np.array([0, 2, 3, 8]), owned=False)
    [1, 3]
    """

    rank: int = 0
    count: int = 1

    @property
    def first(self) -> bool:
        """Is this the rank that writes and speaks for all?"""
        return self.rank == 0

    def part(self, rows: Rows, owned: bool) -> list[int]:
        """Places in a cohort of those that this rank trains.

        Clients of whom something is stored are `owned` by one rank, whoever else comes. Others go
        where there is work to be done.
        """
        numbers = rows if owned else np.arange(len(rows))
        found: list[int] = np.flatnonzero(numbers % self.count == self.rank).tolist()
        return found

    @contextmanager
    def summing(self, of: Callable[[], list[Tensor]]) -> Iterator[None]:
        """What is added to these tensors within, on all ranks, is in them at the end, on all ranks.

        `of` is called at both ends, as tensors may be replaced by others.
        """
        if self.count == 1:
            yield
            return
        if not self.first:  # What was there before is to count once.
            for tensor in of():
                tensor.zero_()
        yield
        tensors = of()
        # One message, since its length matters less than how many there are.
        joined = torch.cat([tensor.reshape(-1) for tensor in tensors])
        dist.all_reduce(joined)
        parts = torch.split(joined, [tensor.numel() for tensor in tensors])
        for tensor, part in zip(tensors, parts, strict=True):
            tensor.copy_(part.view_as(tensor))

    def same(self, x: Tensor) -> Tensor:
        """The first rank's x: other processors might differ in last bits."""
        if self.count > 1:
            dist.broadcast(x, 0)
        return x

    def agree(self, *wishes: bool) -> list[bool]:
        """Each wish, if anybody has it: all ranks must stop after the same round."""
        if self.count == 1:
            return list(wishes)
        votes = torch.tensor(wishes, dtype=torch.int32)
        dist.all_reduce(votes, dist.ReduceOp.MAX)
        return [bool(vote) for vote in votes]

    def tell(self, value: T) -> T:
        """The first rank's value, on all."""
        if self.count == 1:
            return value
        box = [value]
        dist.broadcast_object_list(box, 0)
        return box[0]

    def once(self, work: Callable[[], T]) -> T:
        """Do this work on the first rank; its result, or its exception, is everybody's."""
        if self.count == 1:
            return work()
        result: Any = None
        raised: Exception | None = None
        if self.first:
            try:
                result = work()
            except Exception as error:
                raised = error
        result, raised = self.tell((result, raised))
        if raised is not None:
            raise raised
        return result  # type: ignore[no-any-return]

    def zeros(self, zeros: Zeros) -> Zeros:
        """As `zeros` makes them, but of each table this rank holds its own clients' rows only."""
        if self.count == 1:
            return zeros
        return lambda clients, like: Owned(clients, like, zeros, self)

    def showing(self, tables: Sequence[Tensor | Table], work: Callable[[], None]) -> None:
        """Do this work on the first rank, which meanwhile can read all rows of these tables."""
        owned = [table for table in tables if isinstance(table, Owned)]
        if not self.first:
            while (asked := self.tell(None)) is not None:
                place, start, stop = asked
                owned[place].gather(start, stop)
            return
        for place, table in enumerate(owned):
            table.place = place
        try:
            work()
        finally:
            self.tell(None)


class Owned:
    """A table of all clients, of which each rank holds the rows of its own."""

    def __init__(self, clients: int, like: Tensor, zeros: Zeros, ranks: Ranks) -> None:
        self.shape: torch.Size = torch.Size((clients, len(like)))
        self.place = 0
        """Which of the tables that are being shown this is."""
        self._ranks, self._like = ranks, like.new_empty(0)
        self._held = zeros(len(range(ranks.rank, clients, ranks.count)), like)

    def __len__(self) -> int:
        return self.shape[0]

    @property
    def nbytes(self) -> int:
        """Of all ranks' rows."""
        return self.shape.numel() * self._like.element_size()

    def __getitem__(self, rows: Tensor, /) -> Tensor:
        return self._held[self._places(rows)]

    def __setitem__(self, rows: Tensor, block: Tensor, /) -> None:
        self._held[self._places(rows)] = block

    def read(self, start: int, stop: int) -> NDArray[Any]:
        """On the first rank, and while the others are `showing` their tables."""
        self._ranks.tell((self.place, start, stop))
        return self.gather(start, stop)

    def gather(self, start: int, stop: int) -> NDArray[Any]:
        """These rows, of all ranks, on the first."""
        stop = min(stop, len(self))
        whole = self._like.new_zeros(stop - start, self.shape[1])
        rows = torch.arange(start, stop)
        mine = rows % self._ranks.count == self._ranks.rank
        whole[mine] = self[rows[mine]]
        # Bytes are summed, each of which only its owner has: even the sign of a zero arrives.
        dist.reduce(whole.view(torch.uint8), 0)
        return whole.cpu().numpy()

    def fill(self, start: int, block: NDArray[Any]) -> None:
        rows = torch.arange(start, start + len(block))
        mine = rows % self._ranks.count == self._ranks.rank
        self[rows[mine]] = torch.from_numpy(block[mine.numpy()]).to(self._like)

    def _places(self, rows: Tensor) -> Tensor:
        return rows // self._ranks.count


def found() -> Ranks:
    """As `torchrun` has started them; the only one where it has not.

    A process group that the program itself has set up is used as it is.
    """
    if not dist.is_available():
        return Ranks()
    if not dist.is_initialized():
        if not dist.is_torchelastic_launched():
            return Ranks()
        # Without a name torch takes gloo for tensors on processors and NCCL for those on GPUs.
        dist.init_process_group()
        atexit.register(dist.destroy_process_group)
    ranks = Ranks(dist.get_rank(), dist.get_world_size())
    if not ranks.first:  # What there is to be said is said once.
        logging.getLogger("turnout").setLevel(logging.ERROR)
    return ranks
