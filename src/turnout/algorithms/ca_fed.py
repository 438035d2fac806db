"""CA-Fed: leave out clients whose absence has long memory, as long as that costs little.

Rodio, Faticanti, Marfoq, Neglia, Leonardi, "Federated Learning under Heterogeneous and Correlated
Client Availability", INFOCOM 2023.

Each client comes and goes as a Markov chain of two states. The server estimates, by who was there so
far, the share π of rounds in which it is, and λ, how much of its state it carries on to the next round.
Updates count for α/π, α being the client's share of the objective, except for those that are left out.
These are found in each round by going through all clients, those with the largest |λ| first, and then
again, those with the smallest π first: one is left out where that makes the estimated error

    Σ_k w_k·(F_k − F*) + κ·Γ·d_TV(α, w)²,      Γ = max_k (F_k − F*)

smaller, with w the shares of the objective that is then really followed and F_k the last loss that
client k has reported. With α/π for all who are kept, w_k = α_k/A where A is the sum of their α, and so
d_TV(α, w) = 1 − A: one pass costs no more than there are clients.
"""

import numpy as np
from numpy.typing import NDArray

from turnout.algorithm import Algorithm, Rows, Selection, State, per_client
from turnout.algorithms.recipe import recipe
from turnout.errors import require
from turnout.parts.local import Local
from turnout.parts.transform import sgd
from turnout.parts.weight import uniform

Floats = NDArray[np.float64]


@recipe
def ca_fed(
    bias: float = 1.0,
    tolerance: float = 0.0,
    smoothing: float = 0.0,
    least_loss: float = 0.0,
    server_lr: float = 1.0,
    local: Local = Local(),
) -> Algorithm:
    """CA-Fed: x += (η/N) Σ_{k∈S} Δ_k/π_k over those that are not left out.

    `bias` is κ: the larger, the fewer are left out. An exclusion must make the
    error smaller by more than `tolerance`. Losses are running means that keep `smoothing` of what
    they were; `least_loss` is F*, below which no client's loss can go.
    """
    require(0 <= bias < np.inf, "bias", bias, "a finite number, 0 or more")
    require(0 <= tolerance < np.inf, "tolerance", tolerance, "a finite number, 0 or more")
    require(0 <= smoothing < 1, "smoothing", smoothing, "in [0, 1)")
    require(abs(least_loss) < np.inf, "least_loss", least_loss, "a finite number")
    selection = but_for_the_correlated(bias, tolerance, smoothing, least_loss)
    weight = uniform(per_client)
    return Algorithm("ca_fed", weight, sgd(server_lr), local, selection=selection)


def but_for_the_correlated(
    bias: float, tolerance: float, smoothing: float, least_loss: float
) -> Selection:
    """All who are there but for those whose exclusion makes the estimated error smaller."""

    def init(clients: int) -> State:
        return {
            "here": np.zeros(clients, dtype=bool),  # in the last round
            "rounds": np.zeros(clients, dtype=np.int32),  # that it has been known for
            # Rounds in which it was there, of which one knows what came next.
            "present": np.zeros(clients, dtype=np.int32),
            "came": np.zeros(clients, dtype=np.int32),
            "left": np.zeros(clients, dtype=np.int32),
            "heard": np.zeros(clients, dtype=bool),
            "loss": np.zeros(clients),
        }

    def step(
        state: State, round: int, available: Rows, shares: Floats, draw: np.random.Generator
    ) -> tuple[Rows, State]:
        here, before = np.zeros(len(state["here"]), dtype=bool), state["here"]
        here[available] = True
        known = state["rounds"] > 0
        state["present"] += known & before
        state["came"] += known & ~before & here
        state["left"] += known & before & ~here
        state["rounds"] += 1
        state["here"] = here
        out = _left_out(state, shares / shares.sum())
        return available[~out[available]], state

    @np.errstate(over="ignore", invalid="ignore")  # losses may be next to what numbers can hold
    def _left_out(state: State, alpha: Floats) -> NDArray[np.bool_]:
        heard = state["heard"]
        if not heard.any():
            return np.zeros(len(alpha), dtype=bool)
        losses = np.where(heard, state["loss"], state["loss"][heard].mean())
        share, carried = chains(state)
        orders = [np.argsort(-np.abs(carried), kind="stable"), np.argsort(share, kind="stable")]
        return left_out(losses - least_loss, alpha, orders, bias, tolerance)

    def weigh(state: State, rows: Rows) -> Floats:
        share, _ = chains(state)
        weights: Floats = 1 / share[rows]
        return weights

    def hear(state: State, rows: Rows, losses: Floats) -> State:
        before = state["loss"][rows]
        mixed = smoothing * before + (1 - smoothing) * losses
        state["loss"][rows] = np.where(state["heard"][rows], mixed, losses)
        state["heard"][rows] = True
        return state

    return Selection(init, step, weigh, hear)


def chains(state: State) -> tuple[Floats, Floats]:
    """(π, λ) of each client's chain, by the transitions so far and half a one of each kind."""
    absent = np.maximum(state["rounds"] - 1, 0) - state["present"]
    coming = (state["came"] + 0.5) / (absent + 1)
    leaving = (state["left"] + 0.5) / (state["present"] + 1)
    return coming / (coming + leaving), 1 - coming - leaving


def left_out(
    gaps: Floats, alpha: Floats, orders: list[NDArray[np.int64]], bias: float, tolerance: float
) -> NDArray[np.bool_]:
    """Whom to leave out, by F_k − F*, by shares of the objective, and in which orders to try.

    >>> gaps, alpha = np.array([9.0, 1.0, 1.0, 1.0]), np.full(4, 0.25)
    >>> left_out(gaps, alpha, [np.arange(4)], bias=1.0, tolerance=0.0)
    array([ True, False, False, False])
    """
    out = np.zeros(len(gaps), dtype=bool)
    worst = bias * gaps.max()
    loss, kept = float(gaps @ alpha), float(alpha.sum())
    error = loss / kept + worst * (1 - kept) ** 2
    for order in orders:
        for k in order.tolist():
            rest = kept - alpha[k]
            if out[k] or rest <= 1e-12:  # somebody must be left
                continue
            lighter = loss - alpha[k] * gaps[k]
            then = lighter / rest + worst * (1 - rest) ** 2
            if error - then > tolerance:
                out[k], loss, kept, error = True, lighter, rest, then
    return out
