"""Step sizes by one budget: for every method and pattern as many trials, on data held out."""

from copy import deepcopy
from itertools import product
from typing import Any, NamedTuple

from turnout.errors import InputError
from turnout.experiments.methods import recipe, usual_inner
from turnout.experiments.options import accepted, options
from turnout.experiments.read import Table, change
from turnout.reproduce.grid import Cell, Labels, axes, cell_of
from turnout.reproduce.item import METHOD
from turnout.reproduce.request import Request
from turnout.reproduce.run import Played
from turnout.reproduce.values import value


class Sizes(NamedTuple):
    lr: float
    """γ of the clients, and of the server's own steps where it has some."""
    factor: float
    """η_s as a multiple of the method's own: averages over all clients want larger ones."""


Chosen = dict[tuple[str, ...], Sizes]
"""By the labels of the point, in the order of the axes."""


def tune(request: Request, methods: list[str] | None = None) -> tuple[Chosen, list[Played]]:
    """γ first, at the method's own η_s; then η_s, at that γ. What counts is held-out accuracy."""
    grids = settings_of(request)
    points = points_of(request, methods)
    lrs, factors = grids["lr"], grids["server_lr_factors"]
    trials = {key_of(point): [Sizes(lr, 1.0) for lr in lrs] for point in points}
    scores, one = _try(request, points, trials)
    best = {key: _best(scores, key, sizes) for key, sizes in trials.items()}
    more = {key: [Sizes(best[key].lr, factor) for factor in factors] for key in trials}
    further, two = _try(request, points, more)
    scores |= further
    return {key: _best(scores, key, trials[key] + more[key]) for key in trials}, one + two


def settings_of(request: Request) -> dict[str, Any]:
    item = request.item
    return dict(item.settings) | dict(item.settings.get(request.scale, {}))


def points_of(request: Request, methods: list[str] | None = None) -> list[Labels]:
    """All points at which a method can be played, of these methods."""
    item, scale = request.item, request.item.scales[request.scale]
    known = axes(item, scale)
    if methods is not None:
        known[METHOD] = [label for label in known[METHOD] if label in methods]
    skipped = settings_of(request).get("skip", {})
    found = [dict(zip(known, labels, strict=True)) for labels in product(*known.values())]
    return [p for p in found if not set(skipped.get(p[METHOD], [])) & set(p.values())]


def key_of(point: Labels) -> tuple[str, ...]:
    return tuple(point.values())


def cell_at(
    request: Request, point: Labels, seed: int, sizes: Sizes, changes: list[str] | None = None
) -> Cell:
    """The cell of a method with these step sizes."""
    item, scale = request.item, request.item.scales[request.scale]
    table = deepcopy(item.experiment)
    table["run"].setdefault("name", item.name)
    texts = [text for axis in item.grid for text in axis.changes()[point[axis.axis]]]
    also = item.about.also.get(point[METHOD], [])
    change(table, [*texts, *scale.set, *also, *(changes or [])])
    for entry in table["algorithm"]:
        if entry.get("label") == point[METHOD]:
            _size(entry, sizes)
    return cell_of(item, scale, point, seed, table)


def _size(entry: Table, sizes: Sizes) -> None:
    """Write the step sizes into a method's table, η_s where the method or one inside takes it."""
    entry["lr"] = sizes.lr
    place = entry
    while True:
        build = recipe("algorithm", place["name"])
        takes = accepted(build)
        if "assistance_lr" in takes:
            place["assistance_lr"] = sizes.lr
        if "server_lr" in takes:
            own = place.get("server_lr", options(build)["server_lr"].default)
            place["server_lr"] = own * sizes.factor
            return
        if "inner" not in takes:
            raise InputError(f"{entry['name']} has no server_lr, and no method inside that has one")
        place = place.setdefault("inner", {"name": usual_inner(build)})


def _try(
    request: Request, points: list[Labels], trials: dict[tuple[str, ...], list[Sizes]]
) -> tuple[dict[tuple[tuple[str, ...], Sizes], float], list[Played]]:
    grids = settings_of(request)
    rounds, seed = grids["rounds"], grids["seed"]
    common = [f"data.validation={grids['validation']}"]
    common += [f"run.rounds={rounds}", f"run.clients_every={rounds}"]
    asked: list[tuple[tuple[str, ...], Sizes]] = []
    cells = []
    for point in points:
        own = [text for label in point.values() for text in grids.get("tuned", {}).get(label, [])]
        for sizes in trials[key_of(point)]:
            asked.append((key_of(point), sizes))
            cells.append(cell_at(request, point, seed, sizes, common + own))
    played = request.play(cells)
    tail = max(1, rounds // 4)
    values = [value("tail", each.record, tail) for each in played]
    return dict(zip(asked, values, strict=True)), played


def _best(
    scores: dict[tuple[tuple[str, ...], Sizes], float], key: tuple[str, ...], sizes: list[Sizes]
) -> Sizes:
    return max(sizes, key=lambda each: scores[key, each])
