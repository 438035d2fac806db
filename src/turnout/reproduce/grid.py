"""From an item to its cells: every point of its grid × method × seed is one configuration."""

import json
from copy import deepcopy
from hashlib import blake2b
from itertools import product
from typing import Any, NamedTuple

from turnout.experiments.config import Config
from turnout.experiments.files import json_line
from turnout.experiments.methods import labels
from turnout.experiments.read import Table, change, configure
from turnout.experiments.resolved import resolved
from turnout.reproduce.item import METHOD, WARM_UP, Item, Scale, WarmUp

Labels = dict[str, str]
"""A point: the label that it has on each axis."""


_INDIFFERENT = (
    *("name", "seeds", "engine", "threads", "tail", "checkpoint_seconds", "table_limit", "plots"),
)
"""Of [run]: names, places and looks. Engines and threads differ in the last bits only. A key that
is not here decides, so that a new one does."""


class Cell(NamedTuple):
    """One method with one seed at one point of the grid, and what it goes on from."""

    point: Labels
    seed: int
    config: Config
    after: "Cell | None"
    """The warm-up, whose last model is this cell's first."""

    @property
    def key(self) -> str:
        """The name of all that decides the outcome: cells of different items share results."""
        return blake2b(json_line(content(self)).encode(), digest_size=12).hexdigest()

    @property
    def name(self) -> str:
        return f"{' · '.join(self.point.values())}, seed {self.seed}"

    @property
    def rounds(self) -> int:
        return self.config.run.rounds


def content(cell: Cell) -> dict[str, Any]:
    """All that decides what comes out, and nothing else."""
    table: Table = json.loads(json.dumps(resolved(cell.config)))
    table["run"] = {k: value for k, value in table["run"].items() if k not in _INDIFFERENT}
    del table["data"]["folder"]
    for method in table["algorithm"]:
        method.pop("label", None)
    found = {**table, "seed": cell.seed} | ({"after": content(cell.after)} if cell.after else {})
    kept: dict[str, Any] = _given(found)
    return kept


def _given(node: Any) -> Any:
    """Without what is none, so that an option that is new, and not used, changes no key."""
    if isinstance(node, dict):
        return {key: _given(value) for key, value in node.items() if value is not None}
    return [_given(value) for value in node] if isinstance(node, list) else node


def seeds_of(item: Item, scale: Scale, wanted: int | None) -> list[int]:
    if wanted is not None:
        return list(range(wanted))
    return scale.seeds or item.experiment["run"].get("seeds", [0])


def axes(item: Item, scale: Scale) -> dict[str, list[str]]:
    """The labels of every axis, of those that this scale keeps."""
    methods = labels(configure(experiment(item, scale)).algorithm)
    every = {axis.axis: list(axis.changes()) for axis in item.grid} | {METHOD: methods}
    return {
        axis: [label for label in known if label in scale.only.get(axis, known)]
        for axis, known in every.items()
    }


def experiment(item: Item, scale: Scale) -> Table:
    table = deepcopy(item.experiment)
    table["run"].setdefault("name", item.name)
    return change(table, scale.set)


def cells(item: Item, scale_name: str, seeds: int | None = None) -> list[Cell]:
    """All cells; those of one seed and world stand together."""
    scale = item.scales[scale_name]
    points = [
        dict(zip(axes(item, scale), p, strict=True)) for p in product(*axes(item, scale).values())
    ]
    changes = {axis.axis: axis.changes() for axis in item.grid}
    found = []
    for seed in seeds_of(item, scale, seeds):
        for point in points:
            table = deepcopy(item.experiment)
            table["run"].setdefault("name", item.name)
            texts = [t for axis, of in changes.items() for t in of[point[axis]]]
            change(table, [*texts, *scale.set, *item.about.also.get(point[METHOD], [])])
            found.append(cell_of(item, scale, point, seed, table))
    return found


def cell_of(item: Item, scale: Scale, point: Labels, seed: int, table: Table) -> Cell:
    """The cell of the method at this point, in an experiment that has been changed to it."""
    table["run"]["seeds"] = [seed]
    names = labels(configure(table).algorithm)
    table["algorithm"] = [table["algorithm"][names.index(point[METHOD])]]
    before = None if item.warm_up is None else _warm_up(item.warm_up, scale, point, table)
    return Cell(point, seed, configure(table), before)


def _warm_up(warm_up: WarmUp, scale: Scale, point: Labels, table: Table) -> Cell:
    """The rounds before, which all methods of this world and seed share."""
    rounds = scale.warm_up or warm_up.rounds
    table = deepcopy(table) | {"algorithm": [{"name": warm_up.algorithm}]}
    table["run"] |= {"rounds": rounds, "clients_every": rounds}
    (seed,) = table["run"]["seeds"]
    return Cell(point | {METHOD: WARM_UP}, seed, configure(change(table, warm_up.set)), None)
