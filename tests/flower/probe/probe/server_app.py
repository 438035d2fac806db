"""Plays every case with a strategy of its own and writes down the models."""

from pathlib import Path

import torch
from flwr.app import ConfigRecord, Context
from flwr.serverapp import Grid, ServerApp
from safetensors.torch import save_file
from tests.conformance.cases import logistic
from tests.flower.federations import initial, names, server_data, trajectory

from probe import task
from turnout.flower import Rules, Strategy

app = ServerApp()


@app.main()
def main(grid: Grid, context: Context) -> None:
    clients, rounds = int(context.run_config["clients"]), int(context.run_config["rounds"])
    world, found = task.world(clients), {}
    out, deadline = Path(str(context.run_config["out"])), float(context.run_config["deadline"])
    masked = bool(context.run_config["masked"])
    for name in str(context.run_config["cases"]).split("|"):
        algorithm = task.case(name, clients)
        strategy = Strategy(
            algorithm,
            names(world),
            rules=Rules(deadline=deadline, min_round=0.0, start_with=clients, startup=300.0),
            model=logistic(),
            server_data=server_data(algorithm, world),
            participation=world.participation if masked else None,
            directory=None if masked else out,
            secure=task.FINE if context.run_config["secure"] else None,
        )
        config = ConfigRecord({"case": name})
        models = trajectory(strategy, grid, initial(logistic()), rounds, train_config=config)
        found[name] = torch.stack(models)
    save_file(found, out / "models.safetensors")
