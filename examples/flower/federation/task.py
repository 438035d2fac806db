"""What server and clients agree on: the algorithm, the model, and who has which data."""

from functools import cache

from flwr.app import Context, UserConfig

from turnout import Local, Model, algorithms
from turnout.algorithm import Algorithm
from turnout.data import Partition, Pool, auxiliary, digits, dirichlet

LOCAL = Local(lr=0.1, steps=5, batch_size=16)


def algorithm(config: UserConfig) -> Algorithm:
    """Any of turnout's methods, by name. Both sides make it from the same configuration."""
    build = algorithms.RECIPES[str(config["algorithm"])]
    if build in (algorithms.safari, algorithms.amplified):
        return build(inner=algorithms.fedavg(local=LOCAL))
    return build(local=LOCAL)


def model() -> Model:
    return Model.of("perceptron", (1, 8, 8), 10, {"hidden": [32]})


@cache
def data(clients: int, seed: int) -> tuple[Pool, Partition, Pool, Pool]:
    """The training data and who has which of them, the server's own 100 samples, the test data.

    Here everybody can draw the same cut. In a real federation there is nothing to cut: a client
    reads its own data, and the server what it has.
    """
    train, test = digits(seed)
    train, server = auxiliary(train, 100, seed)
    return train, dirichlet(train.targets.numpy(), clients, 0.3, seed), server, test


def own_data(context: Context) -> Pool:
    """The data of the client that asks."""
    clients, seed = int(context.run_config["population"]), int(context.run_config["seed"])
    train, partition, _, _ = data(clients, seed)
    return train.take(partition.rows(int(context.node_config["partition-id"])))
