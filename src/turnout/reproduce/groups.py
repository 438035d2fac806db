"""Which cells train together: those that differ in seeds and step sizes only, where it pays."""

from collections.abc import Collection, Sequence
from typing import Any

from turnout.experiments.files import json_line
from turnout.reproduce.grid import Cell, content
from turnout.reproduce.play import simulation_of
from turnout.together import room

_AXES = ("seed", "lr", "server_lr", "assistance_lr")
"""Keys in which cells that train together may differ, wherever they stand."""


def grouped(cells: Sequence[Cell], missing: Collection[str]) -> list[list[Cell]]:
    """The cells that are missing, in groups.

    Groups are made of all cells and then left with what is missing, so that what has been played
    before does not put others together.
    """
    kin: dict[str, list[Cell]] = {}
    for cell in {cell.key: cell for cell in cells}.values():
        kin.setdefault(_kin(cell), []).append(cell)
    groups = []
    for some in kin.values():
        several = sum(cell.key in missing for cell in some) > 1
        size = evenly(len(some), _room(some[0]) if several else 1)
        for start in range(0, len(some), size):
            groups.append([cell for cell in some[start : start + size] if cell.key in missing])
    order = {cell.key: place for place, cell in enumerate(cells)}
    return sorted((group for group in groups if group), key=lambda group: order[group[0].key])


def evenly(count: int, room: int) -> int:
    """The size of groups, all about as large, of no more than `room`.

    >>> evenly(5, 3), evenly(5, 16), evenly(5, 1)
    (3, 5, 1)
    """
    return -(-count // -(-count // room))


def _kin(cell: Cell) -> str:
    engine = cell.config.run.engine
    return json_line({"engine": engine, **_without(content(cell))})


def _without(node: Any) -> Any:
    if isinstance(node, dict):
        return {key: _without(value) for key, value in node.items() if key not in _AXES}
    return [_without(value) for value in node] if isinstance(node, list) else node


def _room(cell: Cell) -> int:
    run, model = cell.config.run, cell.config.model.name or ""
    if run.engine not in ("auto", "batched") or model.startswith("cnn"):
        return 1  # without loading the data to see it
    return room(simulation_of(cell.config))
