"""Mini-batches of flat rows for a block of clients, one after the other in the same memory."""

import torch
from torch import Tensor

from turnout.data.pool import Pool
from turnout.engine.contract import Task


class FlatInputs:
    """Inputs [c, B, features] of each step, and a number by which they are still to be multiplied.

    Pixels become scale·(pixel + shift). Where all share one scale it is left to the products that
    the inputs go into, which have it for free, while a pass over a batch costs as much as they do.
    """

    def __init__(self, task: Task, index: Tensor) -> None:
        """`index` is [K, C, B], contiguous."""
        self._task, self._index, dtype = task, index, task.training.dtype
        self._pool = task.pool.inputs.flatten(1)
        count, features = index[0].numel(), self._pool.shape[1]
        self._raw = torch.empty(count, features, dtype=self._pool.dtype)
        same = self._pool.dtype == dtype
        self._ready = self._raw if same else torch.empty(count, features, dtype=dtype)
        self._scale, self._shift = _affine(task.pool, dtype)

    def __call__(self, live: int, step: int) -> tuple[Tensor, float]:
        """Those of the first `live` clients; valid until the next call."""
        if self._task.training.augment is not None:
            return self._task.sample(slice(0, live), step)[0].flatten(2), 1.0
        index = self._index[step, :live]
        raw, ready = self._raw[: index.numel()], self._ready[: index.numel()]
        torch.index_select(self._pool, 0, index.reshape(-1), out=raw)
        if ready.dtype != raw.dtype:
            ready.copy_(raw)
        if self._shift is not None:
            ready.add_(self._shift)
        scale = 1.0
        if isinstance(self._scale, Tensor):
            ready.mul_(self._scale)
        else:
            scale = self._scale
        return ready.view(*index.shape, -1), scale


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
