"""The trainings that are timed: shapes as in the papers, pixels of noise."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from turnout import algorithms
from turnout.data import partition
from turnout.data.pool import Pool
from turnout.draws import generator
from turnout.engine.contract import Training
from turnout.engine.reference import Reference
from turnout.engine.threaded import Precision
from turnout.models import Model, initialise
from turnout.participation import uniform
from turnout.parts.local import Local
from turnout.simulator import Simulation
from turnout.world import World

CLASSES = 10
_TEST = 100


@dataclass(frozen=True)
class Workload:
    """Rounds of plain averaging in which so many clients of all train so many steps."""

    key: str
    title: str
    shape: tuple[int, int, int]
    samples: int
    clients: int
    cohort: int
    model: str
    local: Local

    @property
    def each(self) -> int:
        """Samples of a client."""
        return self.samples // self.clients

    @property
    def steps(self) -> int:
        """Local steps of a client in a round."""
        batch = self.local.batch_size or self.each
        return self.local.steps or (self.local.epochs or 1) * -(-self.each // batch)

    @property
    def client_steps(self) -> int:
        """Of all clients of a round."""
        return self.cohort * self.steps

    @property
    def trained(self) -> int:
        """Samples that a client uses in a round."""
        batch = self.local.batch_size or self.each
        return min(self.steps * batch, self.each) if self.local.epochs else self.steps * batch

    def pool(self) -> Pool:
        draw = generator(0, "benchmark")
        inputs = draw.integers(256, size=(self.samples, *self.shape), dtype=np.uint8)
        labels = draw.integers(CLASSES, size=self.samples)
        mean = torch.full((self.shape[0],), 0.5)
        return Pool(
            torch.from_numpy(inputs), torch.from_numpy(labels), mean, mean / 2, classes=CLASSES
        )

    def module(self) -> nn.Module:
        return initialise(Model.of(self.model, self.shape, CLASSES).module, 0)

    def simulation(
        self, engine: str = "auto", rounds: int | None = None, precision: Precision = "full"
    ) -> Simulation:
        pool = self.pool()
        world = World.build(
            pool,
            partition.iid(self.samples, self.clients, seed=0),
            pool.take(np.arange(_TEST)),
            uniform(self.clients, self.cohort),
        )
        model = Model.of(self.model, self.shape, CLASSES)
        method = algorithms.fedavg(local=self.local)
        return Simulation.of(method, world, model, 0, engine, rounds=rounds, precision=precision)

    def flops(self) -> int:
        """Of a round: products and convolutions, forwards and backwards, as torch counts them."""
        pool = self.pool().take(np.arange(self.local.batch_size or self.each))
        model = Model.of(self.model, self.shape, CLASSES)
        training = Training(model, pool, np.array([0, len(pool)]), 0)
        local = Local(lr=0.1, steps=1, batch_size=None)
        work = Reference(training).work(training.clients(local, np.array([0]), 0))
        with FlopCounterMode(display=False) as counter:
            work.gradient(training.layout.flatten(model.module)[None], 0)
        used = self.trained / len(pool)
        return int(counter.get_total_flops() * used * self.cohort)


def _few(steps: int) -> Local:
    return Local(lr=0.01, steps=steps, batch_size=16)


WORKLOADS = {
    workload.key: workload
    for workload in (
        Workload(
            "a",
            "logistic regression 784→10, 5 clients × 94 steps × batch 64",
            (1, 28, 28),
            60_000,
            10,
            5,
            "logistic",
            Local(lr=0.01, steps=None, epochs=1, batch_size=64),
        ),
        Workload(
            "b",
            "FedAU's CNN for CIFAR-10, 25 clients × 5 steps × batch 16",
            (3, 32, 32),
            50_000,
            250,
            25,
            "cnn",
            _few(5),
        ),
        Workload(
            "c",
            "perceptron 784-64-10, 25 clients × 5 steps × batch 16",
            (1, 28, 28),
            60_000,
            250,
            25,
            "perceptron",
            _few(5),
        ),
    )
}
