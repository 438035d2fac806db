"""Replay a federation's participation in the simulator: `python replay.py [runs/digits]`.

The same data, model and draws, and whoever came in the field: so the first line is the accuracy that
the federation had. The others are what other methods would have made of the same participation.
Updates that came in late are taken in by the simulator as if they had been asked for then.
"""

import sys
import tomllib
from pathlib import Path

from federation import task

from turnout import World, participation, simulate

project = tomllib.loads(Path(__file__).with_name("pyproject.toml").read_text(encoding="utf-8"))
config = project["tool"]["flwr"]["app"]["config"]
file = f"{sys.argv[1] if len(sys.argv) > 1 else config['directory']}/participation.csv"

train, partition, server, test = task.data(config["population"], config["seed"])
world = World.build(train, partition, test, participation.given(file), server)
rounds = participation.load(file).rounds
for name in dict.fromkeys([config["algorithm"], "fedavg", "mifa"]):
    method = task.algorithm({"algorithm": name})
    run = simulate(
        method, world, task.model(), rounds=rounds, seed=config["seed"], evaluate_every=1
    )
    curve = [round(row["test_accuracy"], 3) for row in run.history]
    print(f"{name:8}{curve}")
