"""Groups of clients that take turns."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from turnout.draws import generator
from turnout.errors import require
from turnout.participation.inputs import array, whole
from turnout.participation.process import Attendance, Participation, State


def grouped(
    clients: int,
    groups: int | Sequence[int] | NDArray[Any] = 5,
    length: int = 100,
    phase: bool = False,
    seed: int = 0,
) -> Participation:
    """Group after group for `length` rounds each, as in the experiments of Generalized FedAvg.

    `groups` is a number, for blocks of neighbouring clients, or the group of each client. With
    `phase`, the first round falls anywhere in the cycle.

    >>> grouped(4, groups=2, length=2).mask(5).astype(int).tolist()
    [[1, 1, 0, 0], [1, 1, 0, 0], [0, 0, 1, 1], [0, 0, 1, 1], [1, 1, 0, 0]]
    """
    clients = whole("clients", clients, least=1)
    length = whole("length", length, least=1)
    label = _labels(clients, groups)
    number = int(label.max()) + 1
    order = np.argsort(label, kind="stable")
    members = np.split(order, np.searchsorted(label[order], np.arange(1, number)))
    cycle = number * length
    ahead = int(generator(whole("seed", seed), "grouped").integers(cycle)) if phase else 0

    def step(state: State, round: int) -> tuple[Attendance, State]:
        here = members[(round + ahead) % cycle // length].copy()
        return Attendance(here, here), state

    rates = np.full(clients, 1 / number)
    return Participation("grouped", clients, dict, step, rates=rates, period=cycle)


def _labels(clients: int, groups: int | Sequence[int] | NDArray[Any]) -> NDArray[np.int64]:
    right = "a number of groups, or the group of each client"
    label = array("groups", groups, right)
    if label.ndim == 0:
        number = whole("groups", groups, least=1, most=clients)
        return np.arange(clients) * number // clients
    require(label.shape == (clients,), "shape of groups", label.shape, f"({clients},)")
    require(label.dtype.kind in "iu", "groups", groups, right)
    largest = int(label.max())
    require(bool(label.min() >= 0), "the least of groups", int(label.min()), "at least 0")
    # Checked before groups are counted, so that a label of 10**12 does not ask for as many.
    require(largest < clients, "the largest of groups", largest, f"at most {clients - 1}")
    for group in np.flatnonzero(np.bincount(label) == 0)[:1].tolist():
        require(False, f"the number of clients in group {group}", 0, "at least 1")
    return label.astype(np.int64)


def regularised(clients: int, period: int, reshuffle: bool = False, seed: int = 0) -> Participation:
    """Every client exactly once in each cycle of `period` rounds: δ̃(P) = 0.

    That is *regularized* participation in Generalized FedAvg. A random order of the clients is
    dealt out, N/P a round (give or take one): the same order in every cycle, or a new one with
    `reshuffle`.

    >>> regularised(5, 2).mask(4).sum(axis=0).tolist()
    [2, 2, 2, 2, 2]
    """
    clients = whole("clients", clients, least=1)
    period = whole("period", period, least=1)
    seed = whole("seed", seed)

    def order(cycle: int) -> NDArray[np.int64]:
        return generator(seed, "regularised", cycle).permutation(clients)

    def init() -> State:
        return {"order": order(0)}

    def step(state: State, round: int) -> tuple[Attendance, State]:
        place = round % period
        dealt = slice(clients * place // period, clients * (place + 1) // period)
        here = np.sort(state["order"][dealt])
        ends = reshuffle and place == period - 1
        return Attendance(here, here), {"order": order(round // period + 1)} if ends else state

    rates = np.full(clients, 1 / period)
    repeats = None if reshuffle else period
    return Participation("regularised", clients, init, step, rates=rates, period=repeats)
