"""The papers' theorems as calculators: bounds term by term, conditions, recommended settings.

A module a paper or idea: `objective` (what averaging really minimises), `intervals` (FedAU's
weights and the cutoff K), `fedau`, `amplified`, `classes` (kinds of participation), `safari`,
`learnability` and `impossibility` (what missing clients make impossible), `estimate` (the
constants, measured). Bounds and settings print as tables.

>>> from turnout.theory import Constants, fedau
>>> lr, server_lr = fedau.corollary_4_steps(Constants(smoothness=1, gap=1, noise=1), clients=100,
...     local_steps=1, weight_square=1, rounds=10_000)
>>> lr.value
0.01
"""

from turnout.theory.bound import Bound, Condition, Setting
from turnout.theory.constants import Constants
from turnout.theory.objective import Objective

__all__ = ["Bound", "Condition", "Constants", "Objective", "Setting"]
