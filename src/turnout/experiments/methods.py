"""From the tables [[algorithm]] and [local] to algorithms with labels of their own."""

import inspect
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from turnout.algorithm import Algorithm
from turnout.algorithms import RECIPES
from turnout.errors import InputError, choose
from turnout.experiments.config import AlgorithmSection, Config, LocalSection, ScheduleSection
from turnout.experiments.locate import locate
from turnout.experiments.options import Option, accepted, check, options, unknown
from turnout.experiments.read import validated
from turnout.parts.local import Halve, Local, Piecewise, Schedule, proximal, sgd
from turnout.world import World

Build = Callable[..., Algorithm]
Floats = NDArray[np.float64]
SUPPLIED = ("local", "inner")
"""Parameters of a recipe that come from other tables than its own."""


class Method(NamedTuple):
    """An [[algorithm]] table, read: everything but what only a world can add."""

    path: str
    name: str
    build: Build
    given: dict[str, Any]
    local: Local
    wraps: "Method | None"


def methods(config: Config) -> dict[str, Method]:
    """Every algorithm of the file by its label."""
    read = [
        _method(f"algorithm.{place}", section, config.local)
        for place, section in enumerate(config.algorithm)
    ]
    names = labels(config.algorithm)
    return dict(zip(names, read, strict=True))


class Known(NamedTuple):
    """What a world can add to the options of a method."""

    rates: Floats | None = None
    """Participation rates; None: unknown."""
    labels: Floats | None = None
    """[N, classes]: samples of each class at each client."""
    server_labels: Floats | None = None
    """[classes], likewise at the server."""

    @staticmethod
    def of(world: World) -> "Known":
        classes = world.train.classes
        if classes is None:
            return Known(world.participation.rates)
        owner = np.repeat(np.arange(world.clients), np.diff(world.offsets))
        places = owner * classes + world.train.targets.numpy()
        counts = np.bincount(places, minlength=world.clients * classes).astype(np.float64)
        server = world.server
        own = None if server is None else np.bincount(server.targets.numpy(), minlength=classes)
        return Known(
            world.participation.rates,
            counts.reshape(world.clients, classes),
            None if own is None else own.astype(np.float64),
        )


def algorithm(method: Method, known: Known) -> Algorithm:
    """The algorithm, for a world of which this is known."""
    given = dict(method.given)
    parameters = accepted(method.build)
    rates = known.rates
    if "p" in parameters and "p" not in given:
        given["p"] = _known_rates(method, rates)
    elif isinstance(given.get("p"), float) and rates is not None:
        given["p"] = np.full(len(rates), given["p"])
    for name, what in _CLASSES.items():
        if name in parameters and name not in given:
            given[name] = getattr(known, name)
            if given[name] is None:
                raise InputError(f"{method.path} ({method.name}) needs {name}, and {what}")
    if "local" in parameters:
        given["local"] = method.local
    if method.wraps is not None:
        given["inner"] = algorithm(method.wraps, known)
    try:
        built = method.build(**given)
    except InputError as error:
        raise InputError(f"{method.path} ({method.name}): {error}") from error
    if not isinstance(built, Algorithm):
        raise InputError(
            f"{method.path}.name is {method.name!r}, which returned a {type(built).__name__}; it must "
            "return a turnout Algorithm"
        )
    return built


_CLASSES = {
    "labels": "the samples of this world have no classes; it must be one with classes",
    "server_labels": "the server has no samples with classes; give it some with data.auxiliary",
}
"""What a world is asked for, and what is said where it has none."""


def _known_rates(method: Method, rates: Floats | None) -> Floats:
    """p_n of those that come.

    For those that never do, 1/p does not exist, and is never asked for: any number serves. The
    oracle thus knows the world without them, though it still divides by N.
    """
    if rates is None:
        raise InputError(
            f"{method.path} ({method.name}) needs p, and this participation process has no known "
            "rates; give p as a list with one probability a client"
        )
    return np.where(rates > 0, rates, 1.0)


def _method(path: str, section: AlgorithmSection, common: LocalSection) -> Method:
    build = recipe(path, section.name)
    known, takes = options(build, SUPPLIED), accepted(build)
    own = {key: value for key, value in section.options.items() if key in known}
    rest = {key: value for key, value in section.options.items() if key not in known}
    trains = "local" in takes or "inner" in takes
    for key in rest:
        if not (trains and key in LocalSection.model_fields):
            local = list(LocalSection.model_fields) if trains else []
            role = f"an option of {section.name!r}" + (" or a setting of [local]" if trains else "")
            raise unknown(f"{path}.{key}", key, [*known, *local], role)
    # What is left out here, the world knows; one probability for all may be written as a number.
    for name, kind in {"p": float | list[float], **dict.fromkeys(_CLASSES, list[Any])}.items():
        if name in known:
            known = {**known, name: Option(name, kind | None, None)}
    given = check(path, f"method {section.name!r}", own, known)
    for name in ("p", *_CLASSES):
        if given.get(name, 0) is None:
            del given[name]
    if section.inner is not None and "inner" not in takes:
        raise unknown(f"{path}.inner", "inner", known, f"an option of {section.name!r}")
    settings = override(common, rest, path)
    inner = None
    if "inner" in takes:
        wrapped = section.inner or AlgorithmSection(name=usual_inner(build))
        inner = _method(f"{path}.inner", wrapped, settings)
    return Method(path, section.name, build, given, local_rule(settings), inner)


def recipe(path: str, name: str) -> Build:
    if ":" not in name:
        return RECIPES[choose(f"{path}.name", name, RECIPES)]
    found = locate(f"{path}.name", name)
    if not callable(found):
        raise InputError(
            f"{path}.name is {name!r}, which is not a function that makes an Algorithm"
        )
    build: Build = found
    return build


def usual_inner(build: Build) -> str:
    """The method that `build` goes around where nothing else is said."""
    default = inspect.signature(build).parameters["inner"].default
    return default.name if isinstance(default, Algorithm) else "fedavg"


def override(common: LocalSection, changes: Mapping[str, Any], path: str) -> LocalSection:
    """[local] with a method's own settings; steps and epochs replace one another."""
    if not changes:
        return common
    table = common.model_dump()
    for one, other in (("steps", "epochs"), ("epochs", "steps")):
        if changes.get(one) is not None:
            table[other] = None
    return validated(LocalSection, {**table, **changes}, path)


def local_rule(section: LocalSection) -> Local:
    """What clients do, as the algorithm holds it."""
    steps = 5 if section.steps is None and section.epochs is None else section.steps
    rule = sgd(section.momentum, section.weight_decay, section.clip)
    return Local(
        _rate(section.lr, section.schedule),
        steps,
        section.epochs,
        section.batch_size,
        proximal(section.mu, rule) if section.mu else rule,
    )


def _rate(lr: float, schedule: ScheduleSection | None) -> float | Schedule:
    if schedule is None:
        return lr
    if schedule.factors is None:
        assert schedule.halve_every is not None  # one of the two is given
        return Halve(lr, schedule.halve_every, schedule.after)
    return Piecewise(tuple(lr * factor for factor in schedule.factors), tuple(schedule.until))


def labels(sections: list[AlgorithmSection]) -> list[str]:
    """Given labels; otherwise the name, with its options where the name alone is not unique."""
    plain = [section.label or _short(section) for section in sections]
    crowded = {label for label, times in Counter(plain).items() if times > 1}
    found = [
        _long(section) if label in crowded and section.label is None else label
        for section, label in zip(sections, plain, strict=True)
    ]
    for label, times in Counter(found).items():
        if times > 1:
            raise InputError(
                f"{times} algorithms are called {label!r}; give each [[algorithm]] a label of its own"
            )
    return found


def _short(section: AlgorithmSection) -> str:
    name = section.name.rpartition(":")[2]
    return name if section.inner is None else f"{name}({_short(section.inner)})"


def _long(section: AlgorithmSection) -> str:
    extra = ", ".join(
        f"{key}={'none' if value is None else value}" for key, value in section.options.items()
    )
    return f"{_short(section)} {extra}".strip()
