"""Mini-batches of flat rows for a block of clients, one after the other in the same memory."""

import torch
from torch import Tensor

from turnout.data.pool import Pool
from turnout.engine.contract import Task

CHUNK_BYTES = 1 << 21
"""Inputs are made ready for as many steps at once as have room in so much: in cache, still."""


class FlatInputs:
    """Inputs [c, B, features] of each step, and a number by which they are still to be multiplied.

    Pixels become scale·(pixel + shift). Where all share one scale it is left to the products that
    the inputs go into, which have it for free, while a pass over a batch costs as much as they do.
    """

    def __init__(self, task: Task, index: Tensor) -> None:
        """`index` is [K, C, B]."""
        self._task, self._index, dtype = task, index, task.training.dtype
        self._pool = task.pool.inputs.flatten(1)
        steps, count, features = len(index), index[0].numel(), self._pool.shape[1]
        self._chunk = min(steps, max(1, CHUNK_BYTES // (count * features * dtype.itemsize)))
        size = (self._chunk * count, features)
        self._raw = torch.empty(size, dtype=self._pool.dtype)
        same = self._pool.dtype == dtype
        self._ready = self._raw if same else torch.empty(size, dtype=dtype)
        self._scale, self._shift = _affine(task.pool, dtype)
        self._first, self._inputs = 0, list[Tensor]()

    def __call__(self, live: int, step: int) -> tuple[Tensor, float]:
        """Those of the first `live` clients; valid until the next call."""
        if self._task.training.augment is not None:
            return self._task.sample(slice(0, live), step)[0].flatten(2), 1.0
        place = step - self._first
        if not (0 <= place < len(self._inputs) and live <= len(self._inputs[0])):
            self._first, place = step, 0
            self._inputs = list(self._load(self._index[step : step + self._chunk, :live]))
        inputs = self._inputs[place]
        inputs = inputs if live == len(inputs) else inputs[:live]
        return inputs, 1.0 if isinstance(self._scale, Tensor) else self._scale

    def _load(self, index: Tensor) -> Tensor:
        raw, ready = self._raw[: index.numel()], self._ready[: index.numel()]
        torch.index_select(self._pool, 0, index.reshape(-1), out=raw)
        if ready.dtype != raw.dtype:
            ready.copy_(raw)
        if self._shift is not None:
            ready.add_(self._shift)
        if isinstance(self._scale, Tensor):
            ready.mul_(self._scale)
        return ready.view(*index.shape, -1)


def _affine(pool: Pool, dtype: torch.dtype) -> tuple[Tensor | float, Tensor | float | None]:
    """Scale and shift of the pool's pixels: numbers, or [features] where channels differ."""
    if pool.inputs.dtype != torch.uint8:
        return 1.0, None
    ends = torch.zeros(2, *pool.inputs.shape[1:], dtype=torch.uint8)
    ends[1] = 255
    low, high = pool.normalise(ends, torch.float64).flatten(1)
    scale = (high - low) / 255
    shift = low / scale
    if bool((scale == scale[0]).all() and (shift == shift[0]).all()):
        return float(scale[0]), float(shift[0])
    return scale.to(dtype), shift.to(dtype)
