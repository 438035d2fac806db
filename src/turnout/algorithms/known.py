"""Known probabilities: the oracle that divides each update by p_n.

Unbiased for f under independent participation (FedAU, Theorem 1 with ω_n = 1/p_n).
"""

from numpy.typing import ArrayLike

from turnout.algorithm import Algorithm
from turnout.algorithms.recipe import recipe
from turnout.parts.local import Local
from turnout.parts.transform import sgd
from turnout.parts.weight import inverse


@recipe
def known(p: ArrayLike, server_lr: float = 1.0, local: Local = Local()) -> Algorithm:
    """Known p: x += (η/N) Σ_{i∈S} Δ_i / p_i."""
    return Algorithm("known", inverse(p), sgd(server_lr), local)
