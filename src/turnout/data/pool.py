"""The samples of all clients, kept once: what engines gather their mini-batches from."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from turnout.errors import InputError, require
from turnout.wording import between, counted


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
    owners: NDArray[Any] | None = None  # [samples], whose each is, where the data came with that

    def __post_init__(self) -> None:
        require(
            len(self.targets) == len(self.inputs),
            f"number of targets of {self.name}",
            len(self.targets),
            f"the number of inputs, {len(self.inputs)}",
        )
        for field in ("inputs", "targets"):
            values: Tensor = getattr(self, field)
            if values.is_floating_point() and not bool(torch.isfinite(values).all()):
                row = int((~torch.isfinite(values)).reshape(len(self), -1).any(1).nonzero()[0])
                raise InputError(
                    f"{field} of {self.name} hold NaN or an infinite value in row {row}; all must "
                    "be finite numbers"
                )

    def __len__(self) -> int:
        return len(self.inputs)

    def __repr__(self) -> str:
        shape = "×".join(map(str, self.inputs.shape[1:])) or "one number"
        kind = str(self.inputs.dtype).removeprefix("torch.")
        classes = "" if self.classes is None else f", {counted(self.classes, 'class', 'classes')}"
        return f"<{self.name}: {counted(len(self), 'sample')} of {shape} {kind}{classes}>"

    def gather(
        self,
        index: Tensor,
        dtype: torch.dtype = torch.float32,
        augment: Callable[[Tensor], Tensor] | None = None,
    ) -> tuple[Tensor, Tensor]:
        """The samples at `index` [...]: inputs [..., *sample] and targets [..., *target].

        `augment` changes the raw rows [product of ..., *sample] before they are normalised.
        """
        flat = index.reshape(-1)
        raw = self.inputs.index_select(0, flat)
        inputs = self.normalise(raw if augment is None else augment(raw), dtype)
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
        owners = None if self.owners is None else self.owners[index.numpy()]
        return replace(self, inputs=self.inputs[index], targets=self.targets[index], owners=owners)


@dataclass(frozen=True)
class Partition:
    """Which client holds which sample: client i holds `order[offsets[i]:offsets[i + 1]]`."""

    order: NDArray[np.int64]
    offsets: NDArray[np.int64]  # [clients + 1]

    @staticmethod
    def of(owner: NDArray[np.int64], clients: int) -> "Partition":
        """The partition in which sample k belongs to client `owner[k]`, or to nobody if that is −1.

        >>> Partition.of(np.array([1, 0, -1, 1]), clients=2).rows(1)
        array([0, 3])
        """
        order = np.argsort(owner, kind="stable")
        order = order[owner[order] >= 0].astype(np.int64)
        sizes = np.bincount(owner[order], minlength=clients)
        return Partition(order, np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64))

    def __repr__(self) -> str:
        held = f"{between(self.sizes.min(), self.sizes.max())} each"
        clients, samples = counted(self.clients, "client"), counted(len(self.order), "sample")
        return f"<partition: {clients} with {samples}, {held}>"

    @property
    def clients(self) -> int:
        return len(self.offsets) - 1

    @property
    def sizes(self) -> NDArray[np.int64]:
        return np.diff(self.offsets)

    def rows(self, client: int) -> NDArray[np.int64]:
        return self.order[self.offsets[client] : self.offsets[client + 1]]
