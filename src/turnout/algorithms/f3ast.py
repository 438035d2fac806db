"""F3AST: of those who are there, ask the clients whose share is largest beside how often they came.

Ribero, Vikalo, de Veciana, "Federated Learning Under Intermittent Client Availability and
Time-Varying Communication Constraints", IEEE Journal of Selected Topics in Signal Processing, 2023.

With r_k the rate at which client k is selected and p_k its share of the objective, updates are weighed
by p_k/r_k, and what selection adds to the noise goes with H(r) = Σ p_k²/r_k. In each round the paper
asks those K of the available at which H falls most steeply, the largest p_k²/r_k², and then r moves
towards who was asked: r ← (1 − β)·r + β·[k was asked].

There everybody who is asked delivers. Here some do not, and so there are two running rates: whom to ask
goes by who was asked, or a client whose updates never arrive would have a place for ever, and what an
update counts for by who has delivered.
"""

import numpy as np
from numpy.typing import NDArray

from turnout.algorithm import Algorithm, Rows, Selection, State
from turnout.algorithms.recipe import recipe
from turnout.errors import require
from turnout.parts.local import Local
from turnout.parts.rate import RunningRate, inverse_rate
from turnout.parts.transform import sgd


@recipe
def f3ast(
    per_round: int = 10,
    decay: float = 0.01,
    floor: float = 1e-3,
    server_lr: float = 1.0,
    local: Local = Local(),
) -> Algorithm:
    """F3AST: ask the `per_round` clients with the largest p_k/r_k; x += η·Σ_{k∈S} (p_k/r_k)·Δ_k.

    p_k is the client's share of the objective and r_k a running mean, with `decay` β, of how often it
    came; it begins at per_round/N, and below `floor` counts for that.
    """
    whole = per_round >= 1 and per_round == int(per_round)
    require(whole, "per_round", per_round, "a whole number from 1")
    rate = RunningRate(decay, per_round)
    weight = inverse_rate(rate, floor)
    return Algorithm("f3ast", weight, sgd(server_lr), local, selection=rarest(rate, per_round))


def rarest(rate: RunningRate, per_round: int) -> Selection:
    """Those whose share is largest beside the rate at which they have been asked; by lot if alike."""

    def step(
        state: State,
        round: int,
        available: Rows,
        shares: NDArray[np.float64],
        draw: np.random.Generator,
    ) -> tuple[Rows, State]:
        asked = available
        if len(available) > per_round:
            mixed = draw.permutation(available)
            beside = rate.at(state, round, mixed) / np.maximum(shares[mixed], 1e-300)
            asked = np.sort(mixed[np.argsort(beside, kind="stable")[:per_round]])
        return asked, rate.observe(state, round, asked)

    return Selection(rate.init, step)
