"""Federated learning for clients that do not always show up."""

__version__ = "0.1.0"
