"""FLTrust: each update counts for as much as it agrees with the server's own.

Cao, Fang, Liu, Gong, "FLTrust: Byzantine-robust Federated Learning via Trust Bootstrapping",
NDSS 2021.

It is made against clients that lie, and stands here for contrast: a client whose data are unlike the
server's looks to it like one that lies.
"""

import torch
from torch import Tensor

from turnout.algorithm import Algorithm, Assistance, Share, per_trust
from turnout.algorithms.recipe import recipe
from turnout.parts.assistance import as_a_client, assisted
from turnout.parts.local import Local
from turnout.parts.transform import sgd
from turnout.parts.weight import uniform

_NOTHING = Share(lambda state, tally, round, accuracy: (0.0, state))


@recipe
def fltrust(server_lr: float = 1.0, local: Local = Local()) -> Algorithm:
    """FLTrust: x += (η/Σ TS_i) Σ_{i∈S} TS_i·(‖Δ_0‖/‖Δ_i‖)·Δ_i, with TS_i = max(0, cos(Δ_i, Δ_0)).

    Δ_0 is what the server's data make of the same local training. Nobody is trusted: x stays.
    """
    base = Algorithm("fltrust", uniform(per_trust), sgd(server_lr), local, judge=agreement)
    return assisted(base, Assistance(as_a_client(base), "beside", share=_NOTHING))


def agreement(updates: Tensor, guide: Tensor) -> tuple[Tensor, Tensor]:
    """Updates as long as `guide`, and the cosines between them where these are positive.

    >>> agreement(torch.tensor([[8.0, 0.0], [0.0, 9.0], [-1.0, 0.0]]), torch.tensor([2.0, 0.0]))[1]
    tensor([1., 0., 0.])
    """
    length = updates.norm(dim=1)
    moved = length > 0  # who has not moved agrees with nothing
    directions = updates / torch.where(moved, length, torch.ones_like(length))[:, None]
    own = guide.norm()
    toward = guide / own if own > 0 else guide
    return own * directions, (directions @ toward).clamp(min=0)
