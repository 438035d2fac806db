"""Runs the strategy that the configuration names, and writes down when each round was over."""

import json
import time
from pathlib import Path

import torch
from flwr.app import ArrayRecord, Context
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import FedAvg

from race.task import model
from turnout.algorithms import fedau
from turnout.flower import Rules, Strategy

app = ServerApp()


@app.main()
def main(grid: Grid, context: Context) -> None:
    config, times = context.run_config, [time.monotonic()]
    clients, out = int(config["clients"]), Path(str(config["out"]))
    name = str(config["strategy"])
    if name == "fedavg":
        strategy = FedAvg(
            fraction_evaluate=0.0, min_train_nodes=clients, min_available_nodes=clients
        )
    else:
        rules = Rules(deadline=300.0, start_with=clients)
        strategy = Strategy(fedau(), clients, rules=rules, directory=out / f"{time.time_ns()}")
    torch.manual_seed(0)
    start = ArrayRecord(model().state_dict())
    strategy.start(
        grid,
        start,
        num_rounds=int(config["rounds"]),
        evaluate_fn=lambda number, arrays: times.append(time.monotonic()),
    )
    with open(out / "times.jsonl", "a", encoding="utf-8") as file:
        file.write(json.dumps({"strategy": name, "times": times}) + "\n")
