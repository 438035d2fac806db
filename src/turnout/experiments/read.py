"""From an experiment file and `--set section.key=value` to a `Config`, or to one clear sentence."""

import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

from turnout.errors import InputError
from turnout.experiments.config import Config
from turnout.experiments.options import phrase, unknown

Table = dict[str, Any]
Model = TypeVar("Model", bound=BaseModel)

_PATHS = (("data", "folder"), ("participation", "path"), ("participation", "mask"))


def read(path: Path, changes: Sequence[str] = ()) -> Config:
    """The experiment in the TOML file `path`, changed by `section.key=value` texts.

    The text "none" stands for no value, which TOML cannot say. Relative paths in the file are
    relative to its folder.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path} cannot be read: it must be a text file in UTF-8") from error
    table = parse(text, str(path))
    _anchor(table, path.resolve().parent)
    table.setdefault("run", {})
    if isinstance(table["run"], dict):
        table["run"].setdefault("name", path.stem)
    return configure(change(table, changes))


def parse(text: str, name: str = "the file") -> Table:
    r"""TOML as tables; `InputError` with the line where it is not TOML.

    >>> parse("[run\nrounds = 1")
    Traceback (most recent call last):
    turnout.errors.InputError: the file is not TOML: Expected ']' ... (at line 1, column 5)
    """
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError, ValueError) as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise InputError(f"{name} is not TOML: {reason}") from error


def _anchor(table: Table, folder: Path) -> None:
    for section, key in _PATHS:
        inside = table.get(section)
        value = inside.get(key) if isinstance(inside, dict) else None
        if isinstance(inside, dict) and isinstance(value, str) and value != "none":
            inside[key] = str(folder / Path(value).expanduser())
    data = table.get("data")
    if isinstance(data, dict) and str(data.get("name", "")).startswith(("./", "../")):
        data["name"] = str(folder / data["name"])


def change(table: Table, changes: Sequence[str]) -> Table:
    """Apply `section.key=value` texts: values as TOML has them, or bare words.

    A table of a list is named by its place from 0 or, for algorithms, by its label or name.

    >>> change({"run": {"rounds": 9}}, ["run.rounds=3", "data.name=digits", "run.seeds=[1, 2]"])
    {'run': {'rounds': 3, 'seeds': [1, 2]}, 'data': {'name': 'digits'}}
    """
    for text in changes:
        left, equals, right = text.partition("=")
        keys = [key.strip() for key in left.split(".")]
        if not equals or not all(keys):
            raise InputError(f"--set is {text!r}; it must be section.key=value")
        inside: Any = table
        for depth, key in enumerate(keys[:-1]):
            inside = _enter(inside, key, ".".join(keys[: depth + 1]))
        if not isinstance(inside, dict):
            raise InputError(f"--set is {text!r}; {'.'.join(keys[:-1])} is not a table")
        inside[keys[-1]] = _value(right.strip())
    return table


def _enter(inside: Any, key: str, path: str) -> Any:
    if isinstance(inside, dict):
        return inside.setdefault(key, {})
    if isinstance(inside, list):
        if key.isdecimal() and int(key) < len(inside):
            return inside[int(key)]
        for word in ("label", "name"):
            for entry in inside:
                if isinstance(entry, dict) and entry.get(word) == key:
                    return entry
        names = [str(e.get("label", e.get("name"))) for e in inside if isinstance(e, dict)]
        raise InputError(
            f"--set {path}: there is no {key!r} among {', '.join(names)}, nor is it a place from 0 "
            f"to {len(inside) - 1}"
        )
    raise InputError(f"--set {path}: there is no table to enter")


def _value(text: str) -> Any:
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except (tomllib.TOMLDecodeError, ValueError, RecursionError):
        return text


def configure(table: Mapping[str, Any]) -> Config:
    """The typed configuration of parsed tables; `InputError` about the first thing wrong in them."""
    return validated(Config, _without_none(dict(table)))


def validated(section: type[Model], table: Mapping[str, Any], path: str = "") -> Model:
    """The section that `table`, called `path` in the file, describes."""
    try:
        return section.model_validate(dict(table))
    except ValidationError as error:
        raise InputError(sentence(error, section, path)) from error


def _without_none(node: Any) -> Any:
    if isinstance(node, dict):
        return {key: _without_none(value) for key, value in node.items()}
    if isinstance(node, list):
        return [_without_none(value) for value in node]
    return None if node == "none" else node


def sentence(error: ValidationError, root: type[BaseModel] = Config, table: str = "") -> str:
    """What is wrong first, in one sentence: field, value, and what would be right."""
    details = error.errors(include_url=False)
    # A misspelt key is often the cause of what is missing.
    detail = min(details, key=lambda each: each["type"] != "extra_forbidden")
    path, field, known = _locate(root, detail["loc"], table)
    kind = detail["type"]
    if kind == "value_error":
        return str(detail["ctx"]["error"])
    if kind == "extra_forbidden":
        return str(unknown(path, path.rpartition(".")[2], known, "a key of the configuration"))
    right = _right(field)
    if kind == "missing":
        return f"{path} is missing; it must be {right}"
    return f"{path} is {_shown(detail['input'])}; it must be {right}"


def _shown(value: Any) -> str:
    text = '"none"' if value is None else repr(value)
    return text if len(text) <= 60 else text[:57] + "…"


def _locate(
    root: type[BaseModel], loc: Sequence[str | int], table: str
) -> tuple[str, FieldInfo | None, list[str]]:
    """The path of an error without pydantic's own tags, its field, and the keys known beside it."""
    section: type[BaseModel] | None = root
    field: FieldInfo | None = None
    known: list[str] = []
    path = [table] if table else []
    for part in loc:
        if section is not None and isinstance(part, str):
            known = list(section.model_fields)
            path.append(part)
            field = section.model_fields.get(part)
            section = None if field is None else section_of(field.annotation)
        elif isinstance(part, int):
            path.append(str(part))
    name = ".".join(path)
    return name if name.isprintable() else repr(name), field, known


def section_of(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    for part in get_args(annotation):
        found = section_of(part)
        if found is not None:
            return found
    return None


def _right(field: FieldInfo | None) -> str:
    if field is None:
        return "a table"
    return requirement(field.annotation, field.metadata)


def requirement(annotation: Any, limits: Sequence[Any] = ()) -> str:
    """A field's type and bounds in words.

    >>> from turnout.experiments.config import RunSection
    >>> field = RunSection.model_fields["clients_every"]
    >>> requirement(field.annotation, field.metadata)
    'a whole number of at least 1 or "none"'
    """
    if get_origin(annotation) is Annotated:
        inside, *more = get_args(annotation)
        nested = [
            limit
            for each in more
            for limit in (each.metadata if hasattr(each, "metadata") else [each])
        ]
        return requirement(inside, [*limits, *nested])
    if get_origin(annotation) in (Union, UnionType):
        parts = sorted(get_args(annotation), key=lambda part: part is type(None))
        words = [requirement(part, limits if part is not type(None) else ()) for part in parts]
        return ", ".join(words[:-1]) + " or " + words[-1]
    if get_origin(annotation) is list and section_of(annotation):
        return "one or more tables [[…]]"
    return phrase(annotation) + _bounds(limits)


def _bounds(limits: Sequence[Any]) -> str:
    found = {
        name: getattr(limit, name)
        for limit in limits
        for name in ("ge", "gt", "le", "lt")
        if getattr(limit, name, None) is not None
    }
    if "ge" in found and "le" in found:
        return f" from {found['ge']} to {found['le']}"
    words = {"ge": "of at least", "gt": "above", "le": "of at most", "lt": "below"}
    parts = [f"{words[name]} {found[name]}" for name in words if name in found]
    return " " + " and ".join(parts) if parts else ""
