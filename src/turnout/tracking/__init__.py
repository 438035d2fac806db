"""Metrics for the trackers that people look at: TensorBoard, MLflow, Weights & Biases."""

from turnout.tracking.contract import About
from turnout.tracking.follow import TRACKERS, Following, check, follow, prepare

__all__ = ["TRACKERS", "About", "Following", "check", "follow", "prepare"]
