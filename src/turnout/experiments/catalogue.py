"""What there is to choose from: algorithms, participation processes, data sets, models."""

import inspect
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from turnout.experiments.options import REQUIRED, Option, options


class Item(NamedTuple):
    name: str
    options: str
    """As they are written in a file, with their defaults."""
    summary: str


def algorithms() -> list[Item]:
    from turnout.algorithms import RECIPES
    from turnout.experiments.methods import SUPPLIED

    return [
        Item(name, written(options(build, SUPPLIED)), first_line(build))
        for name, build in sorted(RECIPES.items())
    ]


def participation() -> list[Item]:
    from turnout.experiments.keys import SUPPLIED, WRAPPERS
    from turnout.participation import PROCESSES

    plain = [
        Item(name, written(options(build, SUPPLIED)), first_line(build))
        for name, build in PROCESSES.items()
        if name not in WRAPPERS
    ]
    around = [
        Item(f"… {key} = …", "", f"{first_line(PROCESSES[name])} A key beside any process.")
        for name, key in WRAPPERS.items()
    ]
    return plain + around


def datasets() -> list[Item]:
    from turnout.data import least_squares, quadratics
    from turnout.data.load import DATASETS

    problems = [
        Item(build.__name__, written(options(build, ["seed"])), first_line(build))
        for build in (quadratics, least_squares)
    ]
    return [
        *(Item(name, "", summary) for name, summary in DATASETS.items()),
        Item(
            "a folder, owner/name",
            "image, features, label, client, …",
            "Parquet files as on the Hub",
        ),
        *problems,
    ]


def models() -> list[Item]:
    from turnout.models import MODELS

    known = [Item(name, _pairs(recipe.options), recipe.summary) for name, recipe in MODELS.items()]
    own = Item(
        "package.module:Name", "what it takes", "your torch.nn.Module, or a function returning one"
    )
    return [*known, own]


CATALOGUES: dict[str, Callable[[], list[Item]]] = {
    "algorithms": algorithms,
    "participation": participation,
    "datasets": datasets,
    "models": models,
}


def first_line(function: Callable[..., Any]) -> str:
    """The first line of a docstring, as its summary."""
    return (inspect.getdoc(function) or "").partition("\n")[0]


def written(known: Mapping[str, Option]) -> str:
    """Options as `name=default`, or the name alone where one must be given.

    >>> def process(p: float, period: int | None = None) -> None: ...
    >>> written(options(process))
    'p, period=none'
    """
    return ", ".join(
        option.name if option.default is REQUIRED else f"{option.name}={literal(option.default)}"
        for option in known.values()
    )


def _pairs(defaults: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={literal(value)}" for name, value in defaults.items())


def literal(value: Any) -> str:
    """A default as a file would say it."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(literal, value)) + "]"
    return str(value)
