"""Wait for all: one update a cycle, made of every client's contribution at the same model.

The baselines "wait-minibatch" and "wait-full" of Generalized FedAvg's paper (see `amplified`).
"""

from dataclasses import replace

from turnout.algorithm import Algorithm, Gate, per_client
from turnout.algorithms.recipe import recipe
from turnout.parts.local import Local
from turnout.parts.transform import sgd
from turnout.parts.weight import uniform


@recipe
def wait_minibatch(server_lr: float = 1.0, local: Local = Local()) -> Algorithm:
    """Wait for all, mini-batch: x += (η/N) Σ_all Δ_i once every client has come.

    Each client's first delivered update of the window counts. A client that never comes holds the
    model for ever.
    """
    everybody = Gate(ready=lambda tally: tally.delivered == tally.population)
    return Algorithm("wait_minibatch", uniform(per_client), sgd(server_lr), local, gate=everybody)


@recipe
def wait_full(server_lr: float = 1.0, local: Local = Local()) -> Algorithm:
    """Wait for all, full-batch: the same, each Δ_i one step along the client's full gradient."""
    whole = replace(local, steps=1, epochs=None, batch_size=None)
    return wait_minibatch(server_lr, whole)
