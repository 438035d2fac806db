"""Which engine suits a model."""

from torch import nn

from turnout.engine.contract import Training
from turnout.engine.dense import layers_of


def suited(training: Training) -> str:
    """By the kind of model alone."""
    if layers_of(training) is not None:
        return "batched"
    convolutional = any(isinstance(part, nn.Conv2d) for part in training.model.module.modules())
    # Few parameters mean that the cost is in the number of operations.
    return "threaded" if convolutional or training.layout.size > 100_000 else "batched"
