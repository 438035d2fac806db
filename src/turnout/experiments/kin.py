"""Cells that may train together: those that differ in nothing but their seeds and step sizes."""

from typing import Any

AXES = ("seed", "lr", "server_lr", "assistance_lr")


def but_for_axes(node: Any) -> Any:
    """A configuration, however deep, without what may differ.

    >>> but_for_axes({"name": "safari", "lr": 0.1, "inner": {"name": "fedau", "server_lr": 2.0}})
    {'name': 'safari', 'inner': {'name': 'fedau'}}
    """
    if isinstance(node, dict):
        return {key: but_for_axes(value) for key, value in node.items() if key not in AXES}
    return [but_for_axes(value) for value in node] if isinstance(node, list) else node
