"""Tables as TOML, which Python reads but does not write. "none" stands for None."""

import json
import re
from collections.abc import Mapping
from typing import Any

_BARE = re.compile(r"[A-Za-z0-9_-]+")


def dumps(table: Mapping[str, Any]) -> str:
    """A TOML document.

    >>> print(dumps({"run": {"seeds": [0, 1]}, "algorithm": [{"name": "fedau", "decay": None}]}))
    [run]
    seeds = [0, 1]
    <BLANKLINE>
    [[algorithm]]
    name = "fedau"
    decay = "none"
    <BLANKLINE>
    """
    return "\n\n".join("\n".join(block) for block in _blocks(table, ())) + "\n"


def _blocks(table: Mapping[str, Any], path: tuple[str, ...]) -> list[list[str]]:
    plain, nested = [], []
    for key, value in table.items():
        if isinstance(value, Mapping):
            nested += _blocks(value, (*path, key)) or [[f"[{_dotted((*path, key))}]"]]
        elif _tables(value):
            # What is nested in one of a list of tables is written inline, beside its other keys.
            for each in value:
                nested.append([f"[[{_dotted((*path, key))}]]", *_lines(each)])
        else:
            plain.append(f"{_key(key)} = {_value(value)}")
    if not plain:
        return nested
    return [[f"[{_dotted(path)}]", *plain] if path else plain, *nested]


def _tables(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(v, Mapping) for v in value)


def _lines(table: Mapping[str, Any]) -> list[str]:
    return [f"{_key(key)} = {_value(value)}" for key, value in table.items()]


def _dotted(path: tuple[str, ...]) -> str:
    return ".".join(map(_key, path))


def _key(key: str) -> str:
    return key if _BARE.fullmatch(key) else _text(key)


def _text(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _value(value: Any) -> str:
    if value is None:
        return '"none"'
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, Mapping):
        return "{" + ", ".join(_lines(value)) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_value, value)) + "]"
    return repr(value)
