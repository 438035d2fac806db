"""Random crops and flips of image batches: draws are kept apart from the pixels they move."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from turnout.errors import require


@dataclass(frozen=True)
class Augmentation:
    """A crop out of an image padded with `padding` pixels, then a flip for half of the images.

    >>> moves = Augmentation(padding=1).draw(np.random.default_rng(0), (2, 5))
    >>> moves.shape  # dy, dx, flip
    (2, 5, 3)
    """

    padding: int = 4
    flip: bool = True

    def __post_init__(self) -> None:
        require(self.padding >= 0, "padding", self.padding, "at least 0")

    def draw(self, generator: np.random.Generator, shape: Sequence[int]) -> NDArray[np.int64]:
        """Moves [*shape, 3]: dy and dx in 0 … 2·padding, flip in {0, 1}."""
        # One call with a bound for each column, so that the stream never depends on the settings.
        high = np.array([2 * self.padding, 2 * self.padding, int(self.flip)])
        return generator.integers(0, high, size=(*shape, 3), endpoint=True)

    def apply(self, inputs: Tensor, moves: Tensor) -> Tensor:
        """The images [B, C, H, W] moved by `moves` [B, 3]; what comes in from outside is 0.

        For raw pixels (`Pool.gather(…, augment=…)`) that is black, as is usual.
        """
        require(inputs.dim() == 4, "shape of the images", tuple(inputs.shape), "[B, C, H, W]")
        batch, channels, height, width = inputs.shape
        moves = moves.to(inputs.device, torch.int64)
        down = torch.arange(height, device=inputs.device)
        across = torch.arange(width, device=inputs.device).expand(batch, width)
        flipped = torch.where(moves[:, 2:] > 0, across.flip(1), across)
        rows = down + moves[:, :1] - self.padding
        columns = flipped + moves[:, 1:2] - self.padding
        inside = ((rows >= 0) & (rows < height))[:, :, None] & ((columns >= 0) & (columns < width))[
            :, None, :
        ]
        place = rows.clamp(0, height - 1)[:, :, None] * width
        place = place + columns.clamp(0, width - 1)[:, None, :]
        flat = place.reshape(batch, 1, -1).expand(batch, channels, height * width)
        moved = inputs.reshape(batch, channels, -1).gather(2, flat).reshape(inputs.shape)
        return moved * inside[:, None]


AUGMENTATIONS: dict[str, Augmentation | None] = {
    "none": None,
    "crop": Augmentation(padding=4, flip=False),
    "crop_flip": Augmentation(padding=4, flip=True),
}
"""By the names that a configuration uses: FedAU crops SVHN, and crops and flips CIFAR-10."""
