"""The samples of all clients, kept once: what engines gather their mini-batches from."""

from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor


@dataclass(frozen=True)
class Pool:
    """Inputs and targets, a row a sample.

    Images stay uint8: a gather then moves a quarter of the bytes, and normalisation
    `(x / 255 - mean) / std` runs on the mini-batch only. Floating inputs are used as they are.
    """

    inputs: Tensor
    targets: Tensor
    mean: Tensor | None = None  # [channels], for uint8 images
    std: Tensor | None = None
    classes: int | None = None  # None: not a classification problem
    name: str = "data"

    def __len__(self) -> int:
        return len(self.inputs)

    def gather(self, index: Tensor, dtype: torch.dtype = torch.float32) -> tuple[Tensor, Tensor]:
        """The samples at `index` [...]: inputs [..., *sample] and targets [..., *target]."""
        flat = index.reshape(-1)
        inputs = self.normalise(self.inputs.index_select(0, flat), dtype)
        targets = self.targets.index_select(0, flat)
        if targets.is_floating_point():
            targets = targets.to(dtype)
        return (
            inputs.reshape(*index.shape, *self.inputs.shape[1:]),
            targets.reshape(*index.shape, *self.targets.shape[1:]),
        )

    def normalise(self, inputs: Tensor, dtype: torch.dtype = torch.float32) -> Tensor:
        """Raw rows of the pool as a model reads them."""
        if inputs.dtype != torch.uint8:
            return inputs.to(dtype)
        mean = torch.zeros(1) if self.mean is None else self.mean
        std = torch.ones(1) if self.std is None else self.std
        # One multiply and one add a pixel: x / 255 / std - mean / std.
        shape = (-1, *[1] * (inputs.dim() - 2))
        scale = (1 / (255 * std)).to(inputs.device, dtype).reshape(shape)
        shift = (-mean / std).to(inputs.device, dtype).reshape(shape)
        return torch.addcmul(shift, inputs.to(dtype), scale)

    def take(self, rows: NDArray[np.int64] | Tensor) -> "Pool":
        """The pool of these rows only, in this order."""
        index = torch.as_tensor(rows, dtype=torch.int64)
        return replace(self, inputs=self.inputs[index], targets=self.targets[index])


@dataclass(frozen=True)
class Partition:
    """Which client holds which sample: client i holds `order[offsets[i]:offsets[i + 1]]`."""

    order: NDArray[np.int64]
    offsets: NDArray[np.int64]  # [clients + 1]

    @property
    def clients(self) -> int:
        return len(self.offsets) - 1

    @property
    def sizes(self) -> NDArray[np.int64]:
        return np.diff(self.offsets)

    def rows(self, client: int) -> NDArray[np.int64]:
        return self.order[self.offsets[client] : self.offsets[client + 1]]
