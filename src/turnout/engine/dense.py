"""Gradients of fully connected networks by hand, for a whole block of clients at once.

Weights stay views [C, out, in] of the flat block and activations are [C, features, B], so that
every product is a batched matrix product of what is already there. Gradients land in views of one
flat buffer: nothing is copied and nothing goes through autograd.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from turnout.engine.contract import Task, Training
from turnout.engine.flat_inputs import FlatInputs
from turnout.models import Dropout, cross_entropy, half_squared
from turnout.models.dropout import random_words

Views = dict[str, Tensor]


class Affine(NamedTuple):
    """A fully connected layer, and what its inputs go through first."""

    weight: str
    bias: str | None
    relu: bool
    dropouts: tuple[tuple[float, int], ...]
    """p and salt of each."""


def layers_of(training: Training) -> tuple[Affine, ...] | None:
    """The layers of a model whose gradients this file knows, or None.

    Known are `nn.Sequential`s of Flatten, Linear, ReLU and keyed Dropout that end in a Linear,
    with cross-entropy or half the squared error.

    >>> import numpy as np
    >>> from turnout.data.pool import Pool
    >>> from turnout.models import Model
    >>> pool = Pool(torch.zeros(4, 1, 2, 2), torch.zeros(4, dtype=torch.int64))
    >>> model = Model.of("perceptron", (1, 2, 2), 3)
    >>> [layer.weight for layer in layers_of(Training(model, pool, np.array([0, 4]), seed=0))]
    ['1.weight', '3.weight']
    """
    flat = training.pool.inputs.dim() == 2
    layers: list[Affine] = []
    relu, dropouts = False, list[tuple[float, int]]()
    last: nn.Linear | None = None
    for name, part in _parts(training.model.module, ""):
        forward = type(part).forward
        if part._forward_hooks or part._forward_pre_hooks:
            return None
        if isinstance(part, nn.Flatten) and not layers and not dropouts:
            flat = flat or (part.start_dim, part.end_dim) == (1, -1)
        elif isinstance(part, nn.ReLU) and layers:
            relu = True
        elif isinstance(part, Dropout) and flat and not part.channels:
            dropouts += [(part.p, part.salt)] if part.p else []
        elif isinstance(part, nn.Linear) and forward is nn.Linear.forward and flat:
            dot = f"{name}." if name else ""
            bias = None if part.bias is None else f"{dot}bias"
            layers.append(Affine(f"{dot}weight", bias, relu, tuple(dropouts)))
            last, relu, dropouts = part, False, []
        else:
            return None
    # Frozen, tied or reparametrised weights have other names in the layout.
    names = [name for layer in layers for name in (layer.weight, layer.bias) if name]
    if last is None or relu or dropouts or sorted(names) != sorted(training.layout.names):
        return None
    return tuple(layers) if _fits(training, last.out_features) else None


def _parts(module: nn.Module, name: str) -> Iterator[tuple[str, nn.Module]]:
    hooked = module._forward_hooks or module._forward_pre_hooks
    if type(module).forward is not nn.Sequential.forward or hooked:
        yield name, module
        return
    dot = f"{name}." if name else ""
    for key, child in module._modules.items():
        if child is not None:
            yield from _parts(child, dot + key)


def _fits(training: Training, outputs: int) -> bool:
    targets, loss = training.pool.targets, training.model.loss
    if loss is cross_entropy:
        return targets.dim() == 1 and targets.dtype == torch.int64
    return loss is half_squared and targets[0].numel() == outputs


class Dense:
    """The `Work` of a block of clients."""

    def __init__(self, task: Task, layers: tuple[Affine, ...]) -> None:
        batches, dtype = task.batches, task.training.dtype
        self.steps: Sequence[int] = batches.steps
        self._layers, self._layout, self._keys = layers, task.training.layout, batches.keys
        self._loss = task.training.model.loss
        index = batches.index.transpose(0, 1).contiguous()  # [K, C, B]
        self._inputs = FlatInputs(task, index)
        targets = task.pool.targets[index]
        if targets.is_floating_point():
            targets = targets.to(dtype)
        elif self._loss is cross_entropy:
            targets = targets[:, :, None]  # [K, C, 1, B], as scatter has it
        self._targets = targets.unbind()
        # A mean over a client's own samples: places past a batch's size count for nothing.
        sizes = torch.from_numpy(batches.sizes.T).to(dtype)[:, :, None]
        counts = torch.arange(index.shape[2]) < sizes
        weights = counts.div(sizes)[:, :, None]  # [K, C, 1, B]
        # By step: a view taken in each of them would cost as much as some of the arithmetic.
        self._weights, self._minus = weights.unbind(), weights.neg().unbind()
        self._gradient = torch.empty(len(batches.steps), self._layout.size, dtype=dtype)
        self._at: tuple[Tensor, Tensor, Views, Views] | None = None

    def gradient(self, x: Tensor, step: int) -> Tensor:
        """[c, d] → [c, d], in a buffer that the next call uses again."""
        gradient, weights, slots = self._views(x)
        inputs, scale = self._inputs(x.shape[0], step)
        hidden = inputs.transpose(1, 2)  # [c, features, B]
        entered: list[Tensor] = []
        masks: list[Tensor | None] = []
        for layer in self._layers:
            if layer.relu:
                hidden.relu_()
            mask = self._mask(layer, hidden, step) if layer.dropouts else None
            if mask is not None:
                # The inputs are not ours to change: they are there for several steps.
                hidden = hidden.mul_(mask) if entered else hidden * mask
            alpha = 1.0 if entered else scale
            entered.append(hidden)
            masks.append(mask)
            hidden = _affine(layer, weights, hidden, alpha)
        blame = self._blame(hidden, step)
        for place in reversed(range(len(self._layers))):
            layer, before, mask = self._layers[place], entered[place], masks[place]
            alpha = 1.0 if place else scale
            slots[layer.weight].baddbmm_(blame, before.transpose(1, 2), beta=0, alpha=alpha)
            if layer.bias is not None:
                torch.sum(blame, 2, out=slots[layer.bias])
            if place:
                blame = torch.bmm(weights[layer.weight].transpose(1, 2), blame)
                if mask is not None:
                    blame.mul_(mask)
                if layer.relu:
                    blame.mul_(before > 0)
        return gradient

    def _views(self, x: Tensor) -> tuple[Tensor, Views, Views]:
        # Local steps move x in place, so most of the time the views are already those of x. The
        # tensor is kept with them, so that no other can have its address.
        at = self._at
        if at is None or at[0].data_ptr() != x.data_ptr() or at[0].shape != x.shape:
            gradient = self._gradient[: x.shape[0]]
            self._at = at = x, gradient, self._layout.views(x), self._layout.views(gradient)
        return at[1:]

    def _mask(self, layer: Affine, hidden: Tensor, step: int) -> Tensor:
        # As `Dropout` draws it, by the place in the batch; its rows are samples, ours are features.
        live, features, width = hidden.shape
        mask = torch.ones((), dtype=hidden.dtype)
        for p, salt in layer.dropouts:
            words = random_words(self._keys[:live, step, None], width * features, salt)
            mask = mask * (words >= round(p * 2**32)).to(hidden.dtype) * (1 / (1 - p))
        return mask.view(live, width, features).transpose(1, 2)

    def _blame(self, output: Tensor, step: int) -> Tensor:
        """The gradient of the mean loss by the outputs [c, out, B]."""
        live = output.shape[0]
        weights, targets = self._weights[step], self._targets[step]
        minus = self._minus[step]
        if live < len(self.steps):
            weights, targets, minus = weights[:live], targets[:live], minus[:live]
        if self._loss is cross_entropy:
            return output.softmax(1).mul_(weights).scatter_add_(1, targets, minus)
        goal = targets.reshape(live, output.shape[2], output.shape[1]).transpose(1, 2)
        return (output - goal).mul_(weights)


def _affine(layer: Affine, weights: Views, hidden: Tensor, alpha: float) -> Tensor:
    if layer.bias is None:
        out = torch.bmm(weights[layer.weight], hidden)
        return out if alpha == 1 else out.mul_(alpha)
    bias = weights[layer.bias][:, :, None]
    return torch.baddbmm(bias, weights[layer.weight], hidden, alpha=alpha)
