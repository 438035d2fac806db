"""Gradients of any model for a block of clients at once, by `torch.func.vmap` over `grad`."""

import warnings
from collections.abc import Callable, Sequence
from copy import deepcopy

import torch
from torch import Tensor
from torch.func import functional_call, grad, vmap

from turnout.engine.contract import Task, Training

Gradients = Callable[[dict[str, Tensor], Tensor, Tensor, Tensor, Tensor], dict[str, Tensor]]
"""(parameters, inputs, targets, weights, keys), all [C, …] → gradients [C, …] by name"""


def gradients_of(training: Training) -> Gradients:
    """The vectorised gradient of the mean loss over each client's mini-batch.

    Not for two threads at once: it has a module of its own, into which `functional_call` puts
    other parameters for as long as a call lasts.
    """
    model, keys = training.model, training.dropout_keys
    module = deepcopy(model.module)

    def loss(
        values: dict[str, Tensor], inputs: Tensor, targets: Tensor, weights: Tensor, key: Tensor
    ) -> Tensor:
        substituted = {**values, **dict.fromkeys(keys, key)}
        output = functional_call(module, substituted, (inputs,))
        # Weights are 1/size, and 0 at places past a batch's size: a mean over its own samples.
        return (model.loss(output, targets) * weights).sum()

    return vmap(grad(loss))


def compiled(gradients: Gradients) -> Gradients:
    """The same as machine code; that takes seconds, once for all sizes of blocks."""
    quick: list[Gradients] = []

    def run(
        values: dict[str, Tensor], inputs: Tensor, targets: Tensor, weights: Tensor, key: Tensor
    ) -> dict[str, Tensor]:
        with warnings.catch_warnings():
            # The compiler warns of what it itself imports: nothing that the user could mend.
            warnings.simplefilter("ignore")
            if not quick:
                quick.append(torch.compile(gradients, dynamic=True))
            return quick[0](values, inputs, targets, weights, key)

    return run


class Vmapped:
    """The `Work` of a block of clients."""

    def __init__(self, task: Task, gradients: Gradients) -> None:
        batches, dtype = task.batches, task.training.dtype
        self.steps: Sequence[int] = batches.steps
        self._task, self._gradients = task, gradients
        sizes = torch.from_numpy(batches.sizes).to(dtype)[:, :, None]
        counts = torch.arange(batches.index.shape[2]) < sizes
        self._weights = counts.div(sizes).to(dtype)  # [C, K, B]

    def gradient(self, x: Tensor, step: int) -> Tensor:
        live, layout = slice(0, len(x)), self._task.training.layout
        inputs, targets = self._task.sample(live, step)
        weights, keys = self._weights[live, step], self._task.batches.keys[live, step]
        return layout.flatten(self._gradients(layout.views(x), inputs, targets, weights, keys))
