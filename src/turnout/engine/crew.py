"""Jobs on worker threads, one core each; results come in the order of the jobs."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from queue import Empty, SimpleQueue
from threading import Barrier
from typing import Generic, TypeVar

import torch

T = TypeVar("T")


def in_order(jobs: Iterable[Callable[[], T]], workers: int) -> Iterator[T]:
    """What the jobs return, in their order, however many work on them.

    One worker is the calling thread, with as many intra-op threads as it has; several have one
    each: blocks of small operations lose more by meeting at each of them than they gain.

    >>> list(in_order([lambda: 1, lambda: 2, lambda: 3], workers=2))
    [1, 2, 3]
    """
    if workers == 1:
        for job in jobs:
            yield job()
        return
    crew = _crew(workers)
    waiting: deque[Future[T]] = deque()
    try:
        for job in jobs:
            # One more than there are workers, so that none waits for the results to be taken;
            # no more, since each holds a block's vectors.
            if len(waiting) > workers:
                yield waiting.popleft().result()
            waiting.append(crew.submit(job))
        while waiting:
            yield waiting.popleft().result()
    finally:
        for future in waiting:
            future.cancel()


@cache
def _crew(workers: int) -> ThreadPoolExecutor:
    threads = torch.get_num_threads()
    executor = ThreadPoolExecutor(workers, "turnout", _alone)
    # All start here and now, because `set_num_threads` also leaves its mark on later threads.
    together = Barrier(workers + 1)
    for _ in range(workers):
        executor.submit(together.wait)
    together.wait()
    torch.set_num_threads(threads)
    return executor


@contextmanager
def undisturbed(workers: int) -> Iterator[None]:
    """Where there are several workers, the calling thread has no intra-op threads within this.

    OpenMP's go on spinning for some milliseconds after each operation, on cores that workers need.
    """
    threads = torch.get_num_threads()
    if workers == 1 or threads == 1:
        yield
        return
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def _alone() -> None:
    """One intra-op thread for the calling thread, now and later."""
    torch.set_num_threads(1)
    # A thread takes the number that was last set anywhere when torch first asks for its own. Asked
    # here, before others set theirs, it keeps 1; otherwise the workers' threads would be twice as
    # many as cores, and wait for each other in every operation.
    torch.get_num_threads()


class Spares(Generic[T]):
    """Things of which each worker needs one to itself, made when they are short.

    >>> spares = Spares(list)
    >>> with spares.one() as mine, spares.one() as yours:
    ...     mine is yours
    False
    """

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._free: SimpleQueue[T] = SimpleQueue()

    @contextmanager
    def one(self) -> Iterator[T]:
        try:
            found = [self._free.get_nowait()]
        except Empty:
            found = []
        thing = found[0] if found else self._make()
        try:
            yield thing
        finally:
            self._free.put(thing)
