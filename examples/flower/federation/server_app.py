"""The server's side: one strategy, a model to start from, and an eye on the test data."""

import numpy as np
import torch
from flwr.app import ArrayRecord, Context, MetricRecord
from flwr.serverapp import Grid, ServerApp

from federation import task
from turnout import participation
from turnout.flower import Rules, Strategy
from turnout.models import accuracy, initialise

app = ServerApp()


@app.main()
def main(grid: Grid, context: Context) -> None:
    config = context.run_config
    population, seed = int(config["population"]), int(config["seed"])
    _, _, server_data, test = task.data(population, seed)
    net, inputs = task.model(), test.normalise(test.inputs)

    def evaluate(server_round: int, arrays: ArrayRecord) -> MetricRecord:
        net.module.load_state_dict(arrays.to_torch_state_dict())
        with torch.inference_mode():
            return MetricRecord({"accuracy": float(accuracy(net.module(inputs), test.targets))})

    mask, quorum = str(config["mask"]), float(config["quorum"])
    strategy = Strategy(
        task.algorithm(config),
        population,
        rules=Rules(
            deadline=float(config["deadline"]),
            quorum=quorum if quorum < 1 else None,
            late_rounds=int(config["late_rounds"]),
            start_with=population,
        ),
        seed=seed,
        directory=str(config["directory"]),
        model=net,
        server_data=server_data,
        participation=participation.given(mask) if mask else None,
    )
    start = ArrayRecord(initialise(net.module, seed).state_dict())
    result = strategy.start(grid, start, int(config["rounds"]), evaluate_fn=evaluate)
    curve = [float(m["accuracy"]) for m in result.evaluate_metrics_serverapp.values()]
    print(f"accuracy: {np.round(curve, 3).tolist()}")
