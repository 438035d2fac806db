"""Which cells train together: those that differ in seeds and step sizes only, where it pays."""

from collections.abc import Collection, Sequence

from turnout.experiments.files import json_line
from turnout.experiments.kin import but_for_axes
from turnout.reproduce.grid import Cell, content
from turnout.reproduce.play import simulation_of
from turnout.together import evenly, room


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


def _kin(cell: Cell) -> str:
    engine = cell.config.run.engine
    return json_line({"engine": engine, **but_for_axes(content(cell))})


def _room(cell: Cell) -> int:
    run, model = cell.config.run, cell.config.model.name or ""
    if run.engine not in ("auto", "batched") or model.startswith("cnn"):
        return 1  # without loading the data to see it
    return room(simulation_of(cell.config), run.rounds)
