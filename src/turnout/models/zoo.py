"""The papers' models, as functions of the input's shape and the number of classes."""

from collections.abc import Sequence
from itertools import pairwise
from math import prod

import torch
from torch import Tensor, nn

from turnout.errors import require
from turnout.models.dropout import Dropout
from turnout.room import require_room

Shape = Sequence[int]


class Dense(nn.Linear):
    """A fully connected layer that starts with Kaiming weights and zero bias."""

    def reset_parameters(self) -> None:
        _kaiming(self)


class Conv(nn.Conv2d):
    """A convolution that starts with Kaiming weights and zero bias."""

    def reset_parameters(self) -> None:
        _kaiming(self)


def _kaiming(layer: nn.Linear | nn.Conv2d) -> None:
    nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")
    if layer.bias is not None:
        nn.init.zeros_(layer.bias)


def logistic(input_shape: Shape, classes: int) -> nn.Module:
    """Multinomial logistic regression.

    >>> sum(p.numel() for p in logistic((1, 28, 28), 10).parameters())
    7850
    """
    _check(input_shape, classes)
    return nn.Sequential(nn.Flatten(), Dense(prod(input_shape), classes))


def perceptron(input_shape: Shape, classes: int, hidden: Sequence[int] = (64,)) -> nn.Module:
    """Fully connected layers of the widths `hidden`, with ReLU between them."""
    _check(input_shape, classes)
    return nn.Sequential(nn.Flatten(), *_head([prod(input_shape), *hidden, classes], 0.0))


def cnn(
    input_shape: Shape, classes: int, dropout: float = 0.0, hidden: Sequence[int] = (256, 64)
) -> nn.Module:
    """FedAU's network, which Generalized FedAvg uses too.

    Two 3×3 convolutions of 32 filters, each with ReLU and 2×2 max-pooling, then fully connected
    layers (2048 → 256 → 64 → 10 for CIFAR-10), each with `dropout` before it (the paper: 0.2 for
    CIFAR-100 and CINIC-10).
    """
    return _convolutional(input_shape, classes, (32, 32), 3, hidden, dropout)


def cnn_wide(
    input_shape: Shape, classes: int, dropout: float = 0.0, hidden: Sequence[int] = (512,)
) -> nn.Module:
    """A wider network for SAFARI's CIFAR-10 runs.

    The paper says no more than "CNN". This is the one that federated learning began with: two 5×5
    convolutions of 32 and 64 filters, each with ReLU and 2×2 max-pooling, then 512 units.
    """
    return _convolutional(input_shape, classes, (32, 64), 5, hidden, dropout)


def _convolutional(
    input_shape: Shape,
    classes: int,
    filters: Sequence[int],
    kernel: int,
    hidden: Sequence[int],
    dropout: float,
) -> nn.Module:
    _check(input_shape, classes)
    image = len(input_shape) == 3 and min(input_shape[1:]) >= 4
    require(image, "input shape", tuple(input_shape), "(channels, height, width), at least 4 × 4")
    channels, height, width = input_shape
    layers: list[nn.Module] = []
    for out in filters:
        layers += [Conv(channels, out, kernel, padding=kernel // 2), nn.ReLU(), nn.MaxPool2d(2)]
        channels, height, width = out, height // 2, width // 2
    layers.append(nn.Flatten())
    return nn.Sequential(*layers, *_head([channels * height * width, *hidden, classes], dropout))


def _head(widths: Sequence[int], dropout: float) -> list[nn.Module]:
    hidden = list(widths[1:-1])
    require(all(width >= 1 for width in hidden), "hidden", hidden, "widths of at least 1")
    count = sum(before * after for before, after in pairwise(widths))
    what = "the model, a client's copy of it and its gradient"
    require_room("hidden", hidden, what, 3, count, itemsize=4)
    layers: list[nn.Module] = []
    for salt, (before, after) in enumerate(pairwise(widths)):
        layers += [nn.ReLU()] if salt else []
        layers += [Dropout(dropout, salt)] if dropout else []
        layers.append(Dense(before, after))
    return layers


class Point(nn.Module):
    """One free vector x; the output for input z is x − z."""

    def __init__(self, dim: int, start: Sequence[float] | None = None) -> None:
        super().__init__()
        values = [0.0] * dim if start is None else [float(value) for value in start]
        require(len(values) == dim, "start", start, f"{dim} numbers")
        self.start = tuple(values)
        self.x = nn.Parameter(torch.tensor(values))

    def reset_parameters(self) -> None:
        with torch.no_grad():
            self.x.copy_(torch.tensor(self.start))

    def forward(self, z: Tensor) -> Tensor:
        return self.x - z


def point(dim: int, start: Sequence[float] | None = None) -> nn.Module:
    """The model of the quadratics F_n(x) = ½‖x − z_n‖²: inputs z_n, targets 0, `half_squared`.

    >>> point(2)(torch.tensor([[1.0, 2.0]])).tolist()
    [[-1.0, -2.0]]
    """
    return Point(dim, start)


class Slope(nn.Module):
    """One free vector x; the output for input a is ⟨a, x⟩."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.x = nn.Parameter(torch.zeros(dim))

    def reset_parameters(self) -> None:
        nn.init.zeros_(self.x)

    def forward(self, a: Tensor) -> Tensor:
        return a @ self.x


def linear(dim: int) -> nn.Module:
    """The model of least squares, ½(⟨a, x⟩ − b)²: no bias, starts at 0.

    >>> linear(3)(torch.ones(5, 3)).shape
    torch.Size([5])
    """
    return Slope(dim)


def _check(input_shape: Shape, classes: int) -> None:
    sizes = len(input_shape) > 0 and all(size >= 1 for size in input_shape)
    require(sizes, "input shape", tuple(input_shape), "one or more sizes of at least 1")
    require(classes >= 2, "classes", classes, "at least 2")
