"""MIFA: the mean of everybody's latest update, however old.

Gu et al., "Fast Federated Learning in the Presence of Arbitrary Device Unavailability",
NeurIPS 2021.
"""

from typing import Literal

from turnout.algorithm import Algorithm, once_all_seen, per_client, per_seen
from turnout.algorithms.recipe import recipe
from turnout.errors import choose
from turnout.parts.local import Local
from turnout.parts.memory import client_held, table
from turnout.parts.transform import sgd
from turnout.parts.weight import uniform

_DIVISORS = {"zero": per_client, "seen": per_seen, "wait": once_all_seen}
_STORES = {"server": table, "client": client_held}


@recipe
def mifa(
    init: Literal["zero", "wait", "seen"] = "zero",
    memory: Literal["server", "client"] = "server",
    server_lr: float = 1.0,
    local: Local = Local(),
) -> Algorithm:
    """MIFA: h_i ← Δ_i for those who came, then x += (η/N) Σ_all h_i, also if nobody came.

    `init` says what stands for a client that has not been seen: "zero" an update of zero; "wait"
    holds the model until all have come once, as in the paper, and so for ever if one never
    comes; "seen" takes the mean over those seen so far. `memory` says who keeps the h_i.
    """
    divisor = _DIVISORS[choose("init", init, _DIVISORS)]
    store = _STORES[choose("memory", memory, _STORES)]
    return Algorithm(
        "mifa", uniform(divisor), sgd(server_lr), local, memory=store(divisor), beta=1.0
    )
