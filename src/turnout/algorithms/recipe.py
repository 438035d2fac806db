"""What makes a function a recipe: it returns an `Algorithm` and can be asked for by name."""

import inspect
from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from typing import ParamSpec

from turnout.algorithm import Algorithm

P = ParamSpec("P")

RECIPES: dict[str, Callable[..., Algorithm]] = {}


def recipe(build: Callable[P, Algorithm]) -> Callable[P, Algorithm]:
    """Register `build` under its own name and note its arguments in what it returns."""
    signature = inspect.signature(build)

    @wraps(build)
    def named(*args: P.args, **kwargs: P.kwargs) -> Algorithm:
        given = signature.bind(*args, **kwargs).arguments
        return replace(build(*args, **kwargs), name=build.__name__, settings=dict(given))

    RECIPES[build.__name__] = named
    return named
