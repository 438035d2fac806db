"""Federated learning for clients that do not always show up.

>>> import turnout
>>> turnout.algorithms.fedau(cutoff=50)
fedau(cutoff=50)
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from turnout import algorithms, data, participation, plots
    from turnout import flower as flower
    from turnout.errors import InputError
    from turnout.models import Model
    from turnout.parts.local import Local
    from turnout.round import weights
    from turnout.runs import Run, simulate, simulate_many
    from turnout.world import World

# Imported when first asked for: the command line's help should not have to wait for torch.
_HOMES = {
    "InputError": "errors",
    "Local": "parts.local",
    "Model": "models",
    "Run": "runs",
    "World": "world",
    "algorithms": None,
    "data": None,
    "flower": None,  # not in __all__: `import *` must not need Flower
    "participation": None,
    "plots": None,
    "simulate": "runs",
    "simulate_many": "runs",
    "weights": "round",
}

__all__ = [
    "InputError",
    "Local",
    "Model",
    "Run",
    "World",
    "algorithms",
    "data",
    "participation",
    "plots",
    "simulate",
    "simulate_many",
    "weights",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = _HOMES[name]
    if home is None:
        return import_module(f"{__name__}.{name}")
    found = getattr(import_module(f"{__name__}.{home}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])
