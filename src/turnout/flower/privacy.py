"""Central differential privacy that stays right however many clients take part.

The server bounds each weighted upload ω·Δ to the norm `clip` and adds Gaussian noise of standard
deviation noise·clip to their *sum*, before anything divides it. The noise comes from the declared
bound, and not from how many there should have been: with one upload or a hundred, taking one
client's data away changes the sum by `clip` at most.

What is protected is a client's data, all of it, over the whole run; that it took part is not. A
client that never delivers loses nothing, so the loss is that of the client that delivered most
often: so many Gaussian mechanisms, composed. Who comes is nobody's choice here, so there is no
amplification by sampling to be had.
"""

import secrets
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import torch
from torch import Tensor

from turnout import draws
from turnout.algorithm import Algorithm
from turnout.errors import InputError, require
from turnout.round import Upload


@dataclass(frozen=True)
class Privacy:
    """How much is hidden."""

    clip: float
    """The largest norm of a weighted upload; the declared sensitivity of the sum."""
    noise: float
    """Noise multiplier z: the standard deviation of the noise is z times `clip`."""
    delta: float = 1e-5
    """The δ at which ε is reported."""

    def __post_init__(self) -> None:
        require(self.clip > 0, "privacy.clip", self.clip, "above 0")
        require(self.noise > 0, "privacy.noise", self.noise, "above 0")
        require(0 < self.delta < 1, "privacy.delta", self.delta, "between 0 and 1")

    def bound(self, upload: Upload) -> Upload:
        """The upload with no row longer than `clip`.

        >>> import numpy as np
        >>> upload = Upload(torch.tensor([[3.0, 4.0], [0.3, 0.4]]), np.ones(2), {})
        >>> Privacy(1.0, 1.0).bound(upload).update
        tensor([[0.6000, 0.8000],
                [0.3000, 0.4000]])
        """
        norm = upload.update.norm(dim=1, keepdim=True)
        return upload._replace(update=upload.update * (self.clip / norm.clamp(min=self.clip)))

    def blur(self, total: Tensor, round: int) -> Tensor:
        """The sum with noise, which no seed of the run can foretell."""
        generator = draws.generator(secrets.randbits(64), "privacy", round)
        noise = torch.from_numpy(generator.normal(scale=self.noise * self.clip, size=len(total)))
        return total + noise.to(total)

    def epsilon(self, deliveries: int) -> float:
        """ε at `delta` for a client whose data were in so many sums."""
        if deliveries == 0:
            return 0.0
        accounting, rdp = _accounting()
        accountant = rdp.RdpAccountant()
        accountant.compose(accounting.GaussianDpEvent(self.noise), deliveries)
        return float(accountant.get_epsilon(self.delta))


def require_private(algorithm: Algorithm) -> None:
    """Refuse an algorithm in which one round's noise does not cover what a client has sent."""
    if algorithm.memory is not None or algorithm.local.rule.kept:
        raise InputError(
            f"{algorithm.name} remembers what clients have sent and uses it again in later rounds, "
            "for which the noise of one round does not account; use a method without memory and "
            "control variates, such as fedau"
        )
    if algorithm.assistance is not None and algorithm.assistance.share.reads is not None:
        raise InputError(
            f"{algorithm.name} is told {algorithm.assistance.share.reads}, which no noise covers; use "
            "a method that goes by updates alone, such as fedau or stand_in"
        )
    if algorithm.hears:
        raise InputError(
            f"{algorithm.name} goes by the loss that each client reports, which no noise covers; use a "
            "method that goes by updates alone, such as fedau or f3ast"
        )
    if algorithm.judge is not None:
        raise InputError(
            f"{algorithm.name} judges and rescales every update, so that the noise is not of the size "
            "that the declared bound asks for; use a method without a judge, such as fedau"
        )
    if algorithm.gate is not None:
        raise InputError(
            f"{algorithm.name} holds updates back until a window is over, for which the noise of "
            "one round does not account; use a method without a gate, such as fedau"
        )
    _accounting()


def _accounting() -> tuple[Any, Any]:
    """Google's dp-accounting and its Rényi accountant."""
    try:
        return import_module("dp_accounting"), import_module("dp_accounting.rdp")
    except ImportError:
        raise InputError(
            "privacy needs an accountant: pip install 'turnout[dp]' (dp-accounting)"
        ) from None
