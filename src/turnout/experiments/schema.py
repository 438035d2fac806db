"""Every field of an experiment file: as a readable table and as JSON schema."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from pydantic import BaseModel, create_model

from turnout.experiments.catalogue import literal
from turnout.experiments.config import Config
from turnout.experiments.keys import SUPPLIED, WRAPPERS
from turnout.experiments.options import REQUIRED, options
from turnout.experiments.read import requirement, section_of


class Field(NamedTuple):
    key: str
    kind: str
    default: str
    """Empty where a value must be given."""
    description: str


class Table(NamedTuple):
    heading: str
    """As in the file: [run], [[algorithm]]."""
    about: str
    fields: list[Field]


def tables() -> list[Table]:
    """All tables of a file in their order."""
    return list(_tables(Config, ()))


def _tables(section: type[BaseModel], path: tuple[str, ...]) -> Iterator[Table]:
    fields, nested = [], []
    for key, info in section.model_fields.items():
        inside = section_of(info.annotation)
        if inside is not None and inside is not section:
            nested.append((key, inside))
        else:
            default = "" if info.is_required() else literal(info.default)
            kind = requirement(info.annotation, info.metadata)
            fields.append(Field(key, kind, default, info.description or ""))
    if fields:
        name = ".".join(path)
        heading = f"[[{name}]]" if path == ("algorithm",) else f"[{name}]"
        yield Table(heading, " ".join((section.__doc__ or "").split()), fields)
    for key, inside in nested:
        yield from _tables(inside, (*path, key))


def json_schema() -> dict[str, Any]:
    """The JSON schema of a file; what registered things take is under "options"."""
    from turnout.algorithms import RECIPES
    from turnout.experiments.methods import SUPPLIED as OF_METHODS
    from turnout.experiments.world import PARTITIONS, PROBLEMS
    from turnout.participation import PROCESSES

    processes = {name: build for name, build in PROCESSES.items() if name not in WRAPPERS}
    registries: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
        "algorithm": (dict(RECIPES), OF_METHODS),
        "participation.process": (processes, SUPPLIED),
        "data.partition": (dict(PARTITIONS), SUPPLIED),
        "data": (dict(PROBLEMS), ("seed",)),
    }
    return {
        **Config.model_json_schema(),
        "options": {
            path: {name: _options_schema(name, build, supplied) for name, build in known.items()}
            for path, (known, supplied) in registries.items()
        },
    }


def _options_schema(name: str, build: Any, supplied: tuple[str, ...]) -> dict[str, Any]:
    fields: dict[str, Any] = {
        option.name: (option.kind, ... if option.default is REQUIRED else option.default)
        for option in options(build, supplied).values()
    }
    model: type[BaseModel] = create_model(name, **fields)
    return model.model_json_schema()
