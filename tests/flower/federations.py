"""Federations in this process for the tests of the Flower driver; time passes when they sleep."""

from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

pytest.importorskip("flwr", reason="flwr is not installed: pip install 'turnout[flower]'")

import torch
from flwr.app import ArrayRecord, Context
from flwr.serverapp import Grid
from torch import Tensor

from turnout.algorithm import Algorithm
from turnout.data.pool import Pool
from turnout.flower import InProcessGrid, Rules, Strategy, client_app
from turnout.flower.clock import Clock
from turnout.flower.packing import Packing, record
from turnout.models import Model, initialise
from turnout.world import World


@dataclass
class FakeTime:
    """A clock that only sleeping moves on."""

    seconds: float = 0.0
    naps: int = 0

    def sleep(self, seconds: float) -> None:
        self.seconds += seconds
        self.naps += 1
        assert self.naps < 100_000, "this waits for ever"

    @property
    def clock(self) -> Clock:
        return Clock(now=lambda: self.seconds, wall=lambda: 1e9 + self.seconds, sleep=self.sleep)


def own_data(world: World):
    """`load_data` for clients whose partition-id is their number in the world."""

    def load_data(context: Context) -> Pool:
        client = int(context.node_config["partition-id"])
        rows = np.arange(world.offsets[client], world.offsets[client + 1])
        return world.train.take(rows)

    return load_data


def nodes(clients: int) -> dict[int, dict[str, Any]]:
    """Node ids and node_config, not in the order of clients."""
    return {1000 - 7 * n: {"partition-id": n, "num-partitions": clients} for n in range(clients)}


def initial(model: Model, seed: int = 0, dtype: torch.dtype = torch.float64) -> ArrayRecord:
    """The model that the simulator would start from."""
    module = deepcopy(model.module).to(dtype)
    initialise(module, seed)
    return record(module.state_dict())


def names(world: World) -> list[str]:
    return [str(n) for n in range(world.clients)]


def server_data(algorithm: Algorithm, world: World) -> Pool | None:
    assistance = algorithm.assistance
    everything = assistance is not None and assistance.data == "everything"
    return world.train if everything else world.server


def on_flower(
    algorithm: Algorithm,
    world: World,
    model: Model,
    rounds: int,
    *,
    engine: str = "reference",
    dtype: torch.dtype = torch.float64,
    seed: int = 0,
) -> list[Tensor]:
    """The Flower driver as the conformance suite calls one: the model after each round."""
    strategy = Strategy(
        algorithm,
        names(world),
        rules=Rules(min_round=0.0, start_with=world.clients),
        seed=seed,
        model=model,
        server_data=server_data(algorithm, world),
        shares=world.shares,
        participation=world.participation,
        clock=FakeTime().clock,
    )
    app = client_app(algorithm, model, own_data(world), engine=engine)
    grid = InProcessGrid(app, nodes(world.clients))
    return trajectory(strategy, grid, initial(model, seed, dtype), rounds)


def trajectory(
    strategy: Strategy, grid: Grid, arrays: ArrayRecord, rounds: int, **more: Any
) -> list[Tensor]:
    """The model after each round that `start` plays."""
    seen = {}

    def look(number: int, arrays: ArrayRecord) -> None:
        seen[number] = Packing.of(arrays, strategy.model).start

    strategy.start(grid, arrays, rounds, evaluate_fn=look, **more)
    seen.pop(0, None)
    return list(seen.values())
