"""The same work in Flower's simulation: its FedAvg, a core for each virtual client at work."""

import logging
import threading
from collections.abc import Iterable
from functools import cache
from queue import SimpleQueue
from time import perf_counter
from typing import Any

import numpy as np
import torch
from flwr.app import ArrayRecord, ConfigRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import FedAvg
from flwr.simulation import run_simulation
from torch import nn

from turnout.bench.contestants import Play
from turnout.bench.workloads import WORKLOADS, Workload
from turnout.data.pool import Pool


@cache
def _of(key: str) -> tuple[Workload, Pool, nn.Module]:
    """Kept by each process that plays clients."""
    torch.set_num_threads(1)  # two clients at a time on two cores
    workload = WORKLOADS[key]
    return workload, workload.pool(), workload.module()


def client(key: str) -> ClientApp:
    app = ClientApp()

    @app.train()
    def train(message: Message, context: Context) -> Message:
        workload, pool, module = _of(key)
        module.load_state_dict(message.content.array_records["arrays"].to_torch_state_dict())
        user = int(context.node_config["partition-id"])
        assert not callable(workload.local.lr)
        optimizer = torch.optim.SGD(module.parameters(), workload.local.lr)
        order = np.random.default_rng().permutation(workload.each)[: workload.trained]
        rows = torch.from_numpy(order + user * workload.each)
        for some in torch.split(rows, workload.local.batch_size or workload.each):
            inputs, targets = pool.gather(some)
            loss = nn.functional.cross_entropy(module(inputs), targets)
            optimizer.zero_grad()
            torch.autograd.backward(loss)
            optimizer.step()
        metrics = MetricRecord({"num-examples": workload.each, "train_loss": loss.item()})
        content = RecordDict({"arrays": ArrayRecord(module.state_dict()), "metrics": metrics})
        return Message(content, reply_to=message)

    return app


class _Gated(FedAvg):
    """Flower's FedAvg, which waits before each round until it is asked to play one."""

    def __init__(self, asked: "SimpleQueue[None]", took: "SimpleQueue[float]", **rest: Any) -> None:
        super().__init__(**rest)
        self._asked, self._took, self._began = asked, took, 0.0

    def configure_train(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        if self._began:
            self._took.put(perf_counter() - self._began)
        self._asked.get()
        self._began = perf_counter()
        return super().configure_train(server_round, arrays, config, grid)


def make(workload: Workload) -> Play:
    asked: SimpleQueue[None] = SimpleQueue()
    took: SimpleQueue[float] = SimpleQueue()
    server = ServerApp()

    @server.main()
    def main(grid: Grid, context: Context) -> None:
        share = workload.cohort / workload.clients
        strategy = _Gated(
            asked,
            took,
            fraction_train=share,
            fraction_evaluate=0.0,
            min_train_nodes=workload.cohort,
            min_available_nodes=workload.clients,
        )
        start = ArrayRecord(workload.module().state_dict())
        strategy.start(grid, start, num_rounds=1_000_000)

    logging.getLogger("flwr").setLevel(logging.ERROR)
    resources = {
        "client_resources": {"num_cpus": 1, "num_gpus": 0.0},
        "init_args": {"log_to_driver": False, "logging_level": "ERROR"},
    }
    threading.Thread(
        target=run_simulation,
        args=(server, client(workload.key), workload.clients),
        kwargs={"backend_config": resources},
        daemon=True,
    ).start()

    def play(rounds: int) -> float:
        seconds = 0.0
        for _ in range(rounds):
            asked.put(None)
            seconds += took.get(timeout=120)
        return seconds / rounds

    return play
