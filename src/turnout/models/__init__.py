"""Models as plain `torch.nn.Module`s, with their losses and keyed dropout."""

from turnout.models.dropout import Dropout, key_buffers
from turnout.models.losses import LOSSES, Loss, accuracy, correct, cross_entropy, half_squared
from turnout.models.model import MODELS, Model, Recipe
from turnout.models.prepare import initialise, prepare
from turnout.models.zoo import cnn, cnn_wide, linear, logistic, perceptron, point

__all__ = [
    "LOSSES",
    "MODELS",
    "Dropout",
    "Loss",
    "Model",
    "Recipe",
    "accuracy",
    "cnn",
    "cnn_wide",
    "correct",
    "cross_entropy",
    "half_squared",
    "initialise",
    "key_buffers",
    "linear",
    "logistic",
    "perceptron",
    "point",
    "prepare",
]
