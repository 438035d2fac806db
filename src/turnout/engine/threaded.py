"""The threaded engine: a client a worker, autograd on a copy of the module.

For convolutions on CPUs: batching over clients makes grouped convolutions of them, which are slow,
and one intra-op thread a client beats several that share one.
"""

from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Literal

import torch
from torch import Tensor, nn

from turnout.algorithm import Algorithm, Rows
from turnout.engine.contract import Block, Recall, Task, Training
from turnout.engine.crew import Spares, in_order
from turnout.models import key_buffers
from turnout.models.pooling import pool_first
from turnout.round import Broadcast, Work, client_step

Precision = Literal["full", "bf16"]


@dataclass(frozen=True)
class Threaded:
    """Blocks of one client, in the order of rows whatever the number of workers."""

    training: Training
    workers: int = field(default_factory=torch.get_num_threads)
    precision: Precision = "full"
    """With "bf16" products and convolutions are in bfloat16; the model itself never is."""

    def train(
        self, algorithm: Algorithm, broadcast: Broadcast, rows: Rows, recall: Recall
    ) -> Iterator[Block]:
        def block(place: int) -> Block:
            member = rows[place : place + 1]
            task = self.training.clients(algorithm.local, member, broadcast.round)
            part = broadcast.part(slice(place, place + 1))
            with self._copies.one() as copy:
                work = _OneModule(task, copy)
                return Block(member, *client_step(algorithm, part, work, recall(member)))

        return in_order((partial(block, place) for place in range(len(rows))), self.workers)

    def work(self, task: Task) -> Work:
        return _OneModule(task, self._own)

    @cached_property
    def _copies(self) -> Spares["_Copy"]:
        return Spares(partial(_Copy, self.training, self.precision))

    @cached_property
    def _own(self) -> "_Copy":
        return _Copy(self.training, self.precision)


class _Copy:
    """A module whose parameters are views of whatever vector it is given."""

    def __init__(self, training: Training, precision: Precision) -> None:
        # `deepcopy` reads the module only, so workers may copy it side by side.
        self._training, self._module = training, pool_first(deepcopy(training.model.module))
        self._parameters = [self._module.get_parameter(name) for name in training.layout.names]
        self._keys = [self._module.get_buffer(name) for name in key_buffers(self._module)]
        self._at: tuple[int, Tensor] | None = None
        convolutional = any(isinstance(part, nn.Conv2d) for part in self._module.modules())
        self._format = torch.channels_last if convolutional else torch.contiguous_format
        self._autocast = precision == "bf16"

    def gradient(
        self, x: Tensor, inputs: Tensor, targets: Tensor, key: Tensor, out: Tensor
    ) -> None:
        """Write the gradient at x [d] of the mean loss over one mini-batch to `out` [d]."""
        self._load(x)
        for buffer in self._keys:
            buffer.copy_(key)
        if inputs.dim() == 4:
            inputs = inputs.contiguous(memory_format=self._format)
        with torch.enable_grad(), torch.autocast("cpu", torch.bfloat16, self._autocast):
            output = self._module(inputs)
        with torch.enable_grad():
            loss = self._training.model.loss(output.to(x.dtype), targets).mean()
        gradients = torch.autograd.grad(loss, self._parameters)
        views = self._training.layout.views(out)
        for view, gradient in zip(views.values(), gradients, strict=True):
            view.copy_(gradient)

    def _load(self, x: Tensor) -> None:
        # Local steps move x in place, so most of the time the views are already those of x.
        if self._at is None or self._at[0] != x.data_ptr():
            for parameter, view in zip(
                self._parameters, self._training.layout.views(x).values(), strict=True
            ):
                parameter.data = view
            self._at = x.data_ptr(), x  # x is kept, so that its address stays its own


@dataclass(frozen=True)
class _OneModule:
    task: Task
    copy: _Copy
    _gradient: list[Tensor] = field(default_factory=list, repr=False)

    @property
    def steps(self) -> Sequence[int]:
        return self.task.batches.steps

    def gradient(self, x: Tensor, step: int) -> Tensor:
        batches = self.task.batches
        out = torch.empty_like(x)
        for row in range(len(x)):
            inputs, targets = self.task.sample(slice(row, row + 1), step)
            size = int(batches.sizes[row, step])
            self.copy.gradient(
                x[row], inputs[0, :size], targets[0, :size], batches.keys[row, step], out[row]
            )
        return out
