"""Rounds in which the server trains on data of its own."""

from copy import deepcopy
from dataclasses import dataclass, replace

import numpy as np
import torch

from turnout import round as protocol
from turnout.algorithm import Algorithm
from turnout.data.pool import Pool
from turnout.engine import choose_engine
from turnout.engine.contract import Training
from turnout.errors import InputError
from turnout.models import Model
from turnout.round import ServerState


@dataclass(frozen=True)
class Assistant:
    """The server's data, and the engine that trains on it."""

    training: Training
    engine: str = "reference"

    @staticmethod
    def of(
        algorithm: Algorithm, model: Model | None, data: Pool | None, seed: int, dtype: torch.dtype
    ) -> "Assistant | None":
        """What the algorithm's assistance needs; None where it needs nothing."""
        if algorithm.assistance is None or algorithm.assistance.q == 1:
            return None
        if model is None or data is None:
            missing = "model" if model is None else "server_data"
            raise InputError(
                f"{missing} is none; {algorithm.name} trains at the server, too, and needs the "
                "model and data to train it on"
            )
        module = deepcopy(model.module).to(dtype).train()
        offsets = np.array([0, len(data)])
        return Assistant(Training(replace(model, module=module), data, offsets, seed, dtype))

    def step(self, algorithm: Algorithm, state: ServerState) -> ServerState:
        """A server round."""
        assert algorithm.assistance is not None  # `of` has seen to it
        task = self.training.server(algorithm.assistance, self.training.pool, state.round)
        work = choose_engine(self.engine, self.training).work(task)
        return protocol.server_step(algorithm, state, work)
