"""Driver 2: turnout's algorithms in a live federation on Flower.

    strategy = turnout.flower.Strategy(algorithm, population=N)      # in the ServerApp
    app = turnout.flower.client_app(algorithm, model, load_data)     # the ClientApp

This folder is the only part of turnout that imports flwr; it needs the extra `turnout[flower]`.
"""

from importlib.util import find_spec

if find_spec("flwr") is None:
    raise ModuleNotFoundError(
        "turnout.flower needs Flower: pip install 'turnout[flower]'", name="flwr"
    )

from turnout.flower.client import client_app
from turnout.flower.clock import Clock
from turnout.flower.federation import DivergedError
from turnout.flower.grid import InProcessGrid
from turnout.flower.naming import stable_name
from turnout.flower.own_training import train
from turnout.flower.privacy import Privacy
from turnout.flower.rules import Rules
from turnout.flower.secure import SecureAggregation
from turnout.flower.strategy import Strategy

__all__ = [
    "Clock",
    "DivergedError",
    "InProcessGrid",
    "Privacy",
    "Rules",
    "SecureAggregation",
    "Strategy",
    "client_app",
    "stable_name",
    "train",
]
