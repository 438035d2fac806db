"""Federated learning for clients that do not always show up."""

from turnout import algorithms, data, participation
from turnout.errors import InputError
from turnout.models import Model
from turnout.parts.local import Local
from turnout.round import weights
from turnout.simulate import Run, simulate
from turnout.world import World

__version__ = "0.1.0"

__all__ = [
    "InputError",
    "Local",
    "Model",
    "Run",
    "World",
    "algorithms",
    "data",
    "participation",
    "simulate",
    "weights",
]
