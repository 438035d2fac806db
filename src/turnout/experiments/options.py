"""The options of a registered function, read from its signature: what a TOML file may say to it.

Algorithms, participation processes, partitions and models are functions in registries. Whoever
writes one gets its options checked, listed and documented without a second declaration.
"""

import inspect
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from difflib import get_close_matches
from os import PathLike
from types import NoneType, UnionType
from typing import Any, Literal, NamedTuple, Union, get_args, get_origin, get_type_hints

from numpy.typing import ArrayLike

from turnout.errors import InputError

REQUIRED = inspect.Parameter.empty
Kind = Any  # a type: int, list[float], Literal["a", "b"], or a union of such


class Option(NamedTuple):
    name: str
    kind: Kind
    default: Any
    """`REQUIRED` where there is none."""


def options(function: Callable[..., Any], supplied: Collection[str] = ()) -> dict[str, Option]:
    """The parameters of `function` that a file can give, without those in `supplied`.

    >>> def process(p: float, clients: int, period: int | None = 100) -> None: ...
    >>> [option.name for option in options(process, supplied=["clients"]).values()]
    ['p', 'period']
    """
    hints = get_type_hints(function)
    found = {}
    for name, parameter in inspect.signature(function).parameters.items():
        kind = _expressible(hints.get(name, Any))
        if name not in supplied and kind is not None:
            found[name] = Option(name, kind, parameter.default)
    return found


def accepted(function: Callable[..., Any]) -> set[str]:
    """The names of all parameters of `function`."""
    return set(inspect.signature(function).parameters)


def _expressible(kind: Kind) -> Kind | None:
    """The part of a type that a TOML file can express; None where there is no such part."""
    origin: Any = get_origin(kind)
    parts = get_args(kind)
    if kind in (int, float, bool, str, NoneType, Any) or origin is Literal:
        return kind
    if origin in (Union, UnionType):
        members: list[Kind] = list(parts)
        arrays = get_args(ArrayLike)
        if set(arrays) <= set(members):  # an array, from a file: a list (of lists) of numbers
            members = [part for part in members if part not in arrays] + [list[Any]]
        kept = [part for part in map(_expressible, members) if part is not None]
        return Union[tuple(kept)] if set(kept) - {NoneType} else None  # noqa: UP007
    if inspect.isclass(origin) and issubclass(origin, PathLike):
        return str
    if inspect.isclass(origin) and issubclass(origin, Sequence):
        inside = _expressible(parts[0]) if parts else Any
        return None if inside is None else list[inside]  # type: ignore[valid-type]
    return None


def conform(value: Any, kind: Kind) -> tuple[bool, Any]:
    """Does `value` fit `kind`, and what is it then?

    Whole numbers are numbers, and `inf` stands for none where a whole number or none is wanted
    (K → ∞).

    >>> conform(3, float), conform(True, int)[0], conform(math.inf, int | None)
    ((True, 3.0), False, (True, None))
    """
    origin: Any = get_origin(kind)
    parts = get_args(kind)
    if kind is Any:
        return True, value
    if origin is Literal:
        return value in parts, value
    if origin in (Union, UnionType):
        # A whole number stays one where both fit.
        for part in sorted(parts, key=lambda part: part is not type(value)):
            fits, taken = conform(value, part)
            if fits:
                return True, taken
        return value == math.inf and {int, NoneType} <= set(parts), None
    if origin is list:
        if not isinstance(value, list):
            return False, value
        items = [conform(item, parts[0]) for item in value]
        return all(fits for fits, _ in items), [taken for _, taken in items]
    if kind is float:
        number = isinstance(value, int | float) and not isinstance(value, bool)
        return number, float(value) if number else value
    return isinstance(value, kind) and (kind is bool or not isinstance(value, bool)), value


_WORDS = {
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    str: "text in quotes",
    NoneType: '"none"',
    Any: "a value",
}
_PLURALS = {int: "whole numbers", float: "numbers", str: "texts"}


def phrase(kind: Kind) -> str:
    """`kind` in words.

    >>> phrase(float | list[float] | None)
    'a number, a list of numbers or "none"'
    """
    origin: Any = get_origin(kind)
    parts = get_args(kind)
    if origin is Literal:
        return "one of " + ", ".join(map(repr, parts))
    if origin in (Union, UnionType):
        # Those that one says first: values before their absence.
        words = [phrase(part) for part in sorted(parts, key=lambda part: part is NoneType)]
        return ", ".join(words[:-1]) + " or " + words[-1]
    if origin is list and get_origin(parts[0]) is Literal:
        return "a list of any of " + ", ".join(map(repr, get_args(parts[0])))
    if origin is list:
        return "a list of " + _PLURALS.get(parts[0], "values")
    return _WORDS.get(kind, "a table")


def check(
    path: str, what: str, given: Mapping[str, Any], known: Mapping[str, Option]
) -> dict[str, Any]:
    """The given options of `what` and the defaults of the others; `path` is their table's name.

    >>> def process(p: float, period: int = 100) -> None: ...
    >>> check("participation", "process 'cyclic'", {"p": 1}, options(process))
    {'p': 1.0, 'period': 100}
    """
    taken = {}
    for name, value in given.items():
        if name not in known:
            raise unknown(f"{path}.{name}", name, known, f"an option of {what}")
        fits, taken[name] = conform(value, known[name].kind)
        if not fits:
            raise InputError(f"{path}.{name} is {value!r}; it must be {phrase(known[name].kind)}")
    for name, option in known.items():
        if name not in given and option.default is REQUIRED:
            raise InputError(
                f"{path}.{name} is missing; {what} needs it, and it must be {phrase(option.kind)}"
            )
    return {
        name: taken.get(name, option.default)
        for name, option in known.items()
        if name in taken or option.default is not REQUIRED
    }


def unknown(path: str, name: str, known: Collection[str], role: str) -> InputError:
    """An `InputError` about a key that means nothing here, with the nearest that does."""
    near = get_close_matches(name, known, n=1, cutoff=0.5)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    names = ", ".join(sorted(known)) or "none"
    path = path if path.isprintable() else repr(path)
    return InputError(f"{path} is not {role}{hint} (known: {names})")
