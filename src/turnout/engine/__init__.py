"""Engines: local training of a cohort. They compute gradients and decide the order of work."""

from turnout.engine.contract import Engine, Training
from turnout.engine.select import COMPILED, ENGINES, Choice, Outlook, choose_engine, pick

__all__ = [
    "COMPILED",
    "ENGINES",
    "Choice",
    "Engine",
    "Outlook",
    "Training",
    "choose_engine",
    "pick",
]
