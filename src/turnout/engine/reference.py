"""The reference engine: client after client, plain autograd, obviously right.

Every other engine is tested against this one.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.func import functional_call

from turnout.algorithm import Algorithm, Rows
from turnout.engine.contract import Block, Recall, Task, Training
from turnout.round import Broadcast, Work, client_step


@dataclass(frozen=True)
class Reference:
    """One client at a time."""

    training: Training

    @property
    def workers(self) -> int:
        return 1

    def train(
        self, algorithm: Algorithm, broadcast: Broadcast, rows: Rows, recall: Recall
    ) -> Iterator[Block]:
        for place in range(len(rows)):
            row = rows[place : place + 1]
            task = self.training.clients(algorithm.local, row, broadcast.round)
            part = broadcast.part(slice(place, place + 1))
            upload, kept = client_step(algorithm, part, self.work(task), recall(row))
            yield Block(row, upload, kept)

    def work(self, task: Task) -> Work:
        return _OneByOne(task)


@dataclass(frozen=True)
class _OneByOne:
    task: Task

    @property
    def steps(self) -> Sequence[int]:
        return self.task.batches.steps

    def gradient(self, x: Tensor, step: int) -> Tensor:
        return torch.stack([self._gradient(x[row], row, step) for row in range(len(x))])

    def _gradient(self, x: Tensor, row: int, step: int) -> Tensor:
        training, batches = self.task.training, self.task.batches
        inputs, targets = self.task.sample(slice(row, row + 1), step)
        size = int(batches.sizes[row, step])
        leaf = x.detach().clone().requires_grad_()
        values = dict(training.layout.views(leaf))
        values.update(dict.fromkeys(training.dropout_keys, batches.keys[row, step]))
        output = functional_call(training.model.module, values, (inputs[0, :size],))
        loss = training.model.loss(output, targets[0, :size]).mean()
        (gradient,) = torch.autograd.grad(loss, leaf)
        return gradient
