"""ReLU after max-pooling instead of before it: the same numbers for a quarter of the work."""

from itertools import pairwise

from torch import nn


def pool_first(module: nn.Module) -> nn.Module:
    """Change `module` in place: where max-pooling follows ReLU, pooling goes first.

    ReLU never decreases, so it may be taken of the largest value only. Gradients are the same, too:
    where the largest is positive they go to it either way, and where it is not, nowhere.

    >>> print(pool_first(nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU(), nn.MaxPool2d(2))))
    Sequential(
      (0): Conv2d(1, 2, kernel_size=(3, 3), stride=(1, 1))
      (1): MaxPool2d(kernel_size=2, stride=2, padding=0, dilation=1, ceil_mode=False)
      (2): ReLU()
    )
    """
    for part in module.modules():
        if type(part).forward is not nn.Sequential.forward:
            continue
        for one, other in pairwise(part._modules):
            first, second = part._modules[one], part._modules[other]
            if (
                type(first) is nn.ReLU
                and type(second) is nn.MaxPool2d
                and not _watched(first, second)
            ):
                # Neither has parameters, so no name of one changes.
                part._modules[one], part._modules[other] = second, first
    return module


def _watched(*parts: nn.Module) -> bool:
    """Whether somebody has hooked into one of them, and would see other values."""
    return any(
        part._forward_hooks or part._forward_pre_hooks or part._backward_hooks for part in parts
    )
