"""Rounds in which the server trains on data of its own."""

from copy import deepcopy
from dataclasses import replace

import numpy as np
import torch

from turnout.algorithm import Algorithm
from turnout.assistant import Assistant
from turnout.data.pool import Pool
from turnout.engine import choose_engine
from turnout.engine.contract import Training
from turnout.errors import InputError
from turnout.models import Model

_ENGINE = "reference"


def assistant_of(
    algorithm: Algorithm, model: Model | None, data: Pool | None, seed: int, dtype: torch.dtype
) -> Assistant | None:
    """What the algorithm's assistance needs; None where it needs nothing."""
    if not algorithm.assisted:
        return None
    if model is None or data is None:
        missing = "model" if model is None else "server_data"
        raise InputError(
            f"{missing} is none; {algorithm.name} trains at the server, too, and needs the "
            "model and data to train it on"
        )
    module = deepcopy(model.module).to(dtype).train()
    offsets = np.array([0, len(data)])
    training = Training(replace(model, module=module), data, offsets, seed, dtype)
    return Assistant.of(algorithm, training, data, choose_engine(_ENGINE, training).work)
