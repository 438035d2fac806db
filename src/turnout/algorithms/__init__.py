"""Named methods: one a file, each a short recipe over the parts of `turnout.parts`.

A new file in this folder is found by itself: it registers its recipes by their names.
"""

from importlib import import_module
from pkgutil import iter_modules

from turnout.algorithms.adaptive import fedadam, fedavgm, fedyogi
from turnout.algorithms.amplified import amplified
from turnout.algorithms.amplified_scaffold import amplified_scaffold
from turnout.algorithms.ca_fed import ca_fed
from turnout.algorithms.centralised import centralised
from turnout.algorithms.f3ast import f3ast
from turnout.algorithms.fedau import fedau
from turnout.algorithms.fedavg import average_all, fedavg
from turnout.algorithms.fedawe import fedawe
from turnout.algorithms.fedbuff import fedbuff
from turnout.algorithms.feddu import feddu
from turnout.algorithms.fedkeep import fedkeep
from turnout.algorithms.fedprox import fedprox
from turnout.algorithms.fedstale import fedstale
from turnout.algorithms.fedvarp import fedvarp
from turnout.algorithms.fltrust import fltrust
from turnout.algorithms.focus import focus
from turnout.algorithms.known import known
from turnout.algorithms.mifa import mifa
from turnout.algorithms.recipe import RECIPES, recipe
from turnout.algorithms.safari import safari, server_only
from turnout.algorithms.scaffold import scaffold
from turnout.algorithms.stand_in import stand_in
from turnout.algorithms.wait_for_all import wait_full, wait_minibatch

__all__ = [
    "RECIPES",
    "amplified",
    "amplified_scaffold",
    "average_all",
    "ca_fed",
    "centralised",
    "f3ast",
    "fedadam",
    "fedau",
    "fedavg",
    "fedavgm",
    "fedawe",
    "fedbuff",
    "feddu",
    "fedkeep",
    "fedprox",
    "fedstale",
    "fedvarp",
    "fedyogi",
    "fltrust",
    "focus",
    "known",
    "mifa",
    "recipe",
    "safari",
    "scaffold",
    "server_only",
    "stand_in",
    "wait_full",
    "wait_minibatch",
]

for _module in iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")
globals().update(RECIPES)  # the recipe, not the module of that name
