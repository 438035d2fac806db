"""(d): what a round costs beyond training, for populations of a thousand to ten million clients."""

from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
import torch

from turnout import algorithms
from turnout import round as protocol
from turnout.participation import bernoulli, uniform
from turnout.participation.process import Participation
from turnout.round import Upload

SIZES = (1_000, 10_000, 100_000, 1_000_000, 10_000_000)
SHARE = 0.001
PARTICIPANTS = 1000
_PARAMETERS = 10


class Bookkeeping(NamedTuple):
    """Of one population, in seconds a round at best."""

    clients: int
    here: float
    """Clients that come in a round, on average, at a thousandth of the population."""
    mask: float
    weights: float
    """FedAU's: looked up before training, brought up to date after it."""
    bytes_each: float
    """A client, of what mask and weights keep."""
    of_a_thousand: float
    """A whole round without training, of a thousand participants drawn from this population."""


def bookkeeping(clients: int, rounds: int) -> Bookkeeping:
    """Time the best of so many rounds."""
    rates = np.full(clients, SHARE)
    process = bernoulli(rates, seed=1)
    algorithm = algorithms.fedau(cutoff=50)
    state = algorithm.weight.init(clients)
    presence, mask, weights, here = process.init(), [], [], []
    for t in range(rounds):
        began = perf_counter()
        attendance, presence = process.step(presence, t)
        drawn = perf_counter()
        algorithm.weight.weigh(state, t, attendance.delivered)
        state = algorithm.weight.observe(state, t, attendance.delivered)
        weights.append(perf_counter() - drawn)
        mask.append(drawn - began)
        here.append(len(attendance.delivered))
    kept = _bytes(state) + _bytes(rates) + 2 * clients  # of each rate its leading bits, besides
    whole = _whole_rounds(uniform(clients, min(PARTICIPANTS, clients), seed=1), rounds)
    return Bookkeeping(
        clients, float(np.mean(here)), min(mask), min(weights), kept / clients, min(whole)
    )


def _whole_rounds(process: Participation, rounds: int) -> Sequence[float]:
    """Draw, announce, absorb and close, with updates that nobody had to compute."""
    algorithm, presence, took = algorithms.fedau(cutoff=50), process.init(), []
    state = protocol.start(algorithm, torch.zeros(_PARAMETERS), process.clients)
    for t in range(rounds):
        began = perf_counter()
        attendance, presence = process.step(presence, t)
        rows = attendance.delivered
        broadcast = protocol.announce(algorithm, state, rows)
        update = torch.zeros(len(rows), _PARAMETERS)
        state = protocol.absorb(algorithm, state, rows, Upload(update, broadcast.weights, {}))
        state = protocol.close(algorithm, state)
        took.append(perf_counter() - began)
    return took


def _bytes(node: Any) -> int:
    if isinstance(node, dict):
        return sum(map(_bytes, node.values()))
    return node.nbytes if isinstance(node, np.ndarray) else 0


def all_sizes(most: int, rounds: int, say: Callable[[str], None]) -> list[Bookkeeping]:
    found = []
    for clients in SIZES:
        if clients <= most:
            say(f"(d) {clients:,} clients")
            found.append(bookkeeping(clients, rounds))
    return found
