"""Losses and scores, one number a sample: whoever calls them decides on the mean."""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional as F

from turnout.errors import require

Loss = Callable[[Tensor, Tensor], Tensor]
"""(output [B, ...], target [B, ...]) → [B]"""


def cross_entropy(output: Tensor, target: Tensor) -> Tensor:
    """−log softmax(output)[target], for output [B, C] and target [B].

    >>> cross_entropy(torch.zeros(2, 4), torch.tensor([0, 3]))
    tensor([1.3863, 1.3863])
    """
    return F.cross_entropy(output, target, reduction="none")


def half_squared(output: Tensor, target: Tensor) -> Tensor:
    """½‖output − target‖² of each sample; output [B, 1] may meet target [B].

    >>> half_squared(torch.tensor([[3.0, 4.0]]), torch.zeros(1, 2))
    tensor([12.5000])
    """
    # Checked, because broadcasting [B, 1] against [B] would quietly give [B, B].
    require(
        output.numel() == target.numel(),
        "shape of the model's output",
        tuple(output.shape),
        f"that of the targets, {tuple(target.shape)}",
    )
    squares = (output.reshape(target.shape) - target).square()
    return 0.5 * squares.reshape(len(squares), -1).sum(1)


def correct(output: Tensor, target: Tensor) -> Tensor:
    """Whether the largest output is the target's: booleans [B]."""
    return output.argmax(-1) == target


def accuracy(output: Tensor, target: Tensor) -> Tensor:
    """The share of correct samples, a scalar.

    >>> accuracy(torch.tensor([[0.0, 1.0], [1.0, 0.0]]), torch.tensor([1, 1]))
    tensor(0.5000)
    """
    return correct(output, target).to(torch.get_default_dtype()).mean()


LOSSES: dict[str, Loss] = {"cross_entropy": cross_entropy, "half_squared": half_squared}
