"""The user's own code by its import path."""

import importlib
from typing import Any

from turnout.errors import InputError


def locate(field: str, source: str) -> Any:
    """What "package.module:name" names.

    >>> locate("algorithm.0.name", "math:tau")
    6.283185307179586
    """
    package, _, name = source.partition(":")
    try:
        found: Any = importlib.import_module(package)
        for part in name.split("."):
            found = getattr(found, part)
    except Exception as error:  # whatever an imported file raises is the user's to read
        raise InputError(
            f"{field} is {source!r}, which cannot be imported ({type(error).__name__}: {error}); it "
            "must be package.module:name, with the package on the Python path"
        ) from error
    return found
