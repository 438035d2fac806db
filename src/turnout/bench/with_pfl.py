"""The same work in pfl-research: its federated averaging on its simulated backend, with PyTorch."""

from functools import partial
from typing import Any

import numpy as np
import torch
from pfl.aggregate.simulate import SimulatedBackend
from pfl.aggregate.weighting import WeightByUser
from pfl.algorithm.base import NNAlgorithmParams
from pfl.algorithm.federated_averaging import FederatedAveraging
from pfl.data.federated_dataset import FederatedDataset
from pfl.data.pytorch import PyTorchTensorDataset
from pfl.data.sampling import get_user_sampler
from pfl.hyperparam import NNTrainHyperParams
from pfl.model.pytorch import PyTorchModel
from torch import Tensor, nn

from turnout.bench.contestants import Play, timed
from turnout.bench.workloads import Workload


class _Trained(nn.Module):
    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module

    def loss(self, inputs: Tensor, targets: Tensor) -> Tensor:
        return nn.functional.cross_entropy(self.module(inputs), targets)

    def metrics(self, inputs: Tensor, targets: Tensor) -> dict[str, Any]:
        return {}  # nothing is evaluated


def make(workload: Workload) -> Play:
    """Rounds without evaluation; a user's data are shuffled, gathered and normalised each time."""
    pool, local = workload.pool(), workload.local
    draw = np.random.default_rng(0)

    def data_of(user: int) -> PyTorchTensorDataset:
        # Only what its steps will use, and from bytes: faster for pfl than all of it, or floats.
        order = draw.permutation(workload.each)[: workload.trained] + user * workload.each
        return PyTorchTensorDataset(pool.gather(torch.from_numpy(order)), user_id=str(user))

    users = list(range(workload.clients))
    data = FederatedDataset(data_of, get_user_sampler("minimize_reuse", users))
    model = PyTorchModel(
        _Trained(workload.module()),
        partial(torch.optim.SGD),
        torch.optim.SGD([nn.Parameter(torch.zeros(1))], lr=1.0),
    )
    model._central_optimizer = torch.optim.SGD(model.pytorch_model.parameters(), lr=1.0)
    backend = SimulatedBackend(data, data, postprocessors=[WeightByUser()])
    assert not callable(local.lr)
    settings = NNTrainHyperParams(
        local_num_epochs=local.epochs,
        local_num_steps=local.steps,
        local_learning_rate=local.lr,
        local_batch_size=local.batch_size,
    )
    algorithm = FederatedAveraging()

    def play(rounds: int) -> float:
        done = algorithm._current_central_iteration
        plan = NNAlgorithmParams(
            central_num_iterations=done + rounds,
            evaluation_frequency=1 << 40,
            train_cohort_size=workload.cohort,
            val_cohort_size=None,
        )
        run = partial(algorithm.run, plan, backend, model, settings, send_metrics_to_platform=False)
        return timed(1, run) / rounds

    algorithm._current_central_iteration = 1  # the zeroth would evaluate
    return play
