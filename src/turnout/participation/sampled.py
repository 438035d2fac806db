"""m clients a round out of those available, by going through permutations of them."""

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from turnout.draws import generator
from turnout.errors import require
from turnout.participation.inputs import whole
from turnout.participation.part import own_purpose, restrict
from turnout.participation.process import Attendance, Participation, Rows, State

_INNER = "inner."


def sampled(inner: Participation, per_round: int, seed: int = 0) -> Participation:
    """The next `per_round` of a random permutation of those that `inner` would ask.

    As in the experiments of Generalized FedAvg: everyone available is used once before anyone is
    used twice, and the permutation is drawn anew as soon as others are available. A group of 50
    that is there for 100 rounds thus gives each of its clients exactly 20 of them at m = 10, which
    makes the cycle regular. Where no more than `per_round` are available, all of them come.

    >>> from turnout.participation.always import always
    >>> sampled(always(6), 2).mask(3).sum(axis=0).tolist()
    [1, 1, 1, 1, 1, 1]
    """
    per_round = whole("per_round", per_round, least=1, most=inner.clients)
    seed = whole("seed", seed)
    right = "a process of rounds: in one of arrivals nobody is asked"
    require(not inner.asynchronous, "inner", inner.name, right)
    purpose = own_purpose("sampled", inner)

    def init() -> State:
        none = np.empty(0, dtype=np.int64)
        return {"available": none, "queue": none} | _packed(inner.init())

    def step(state: State, round: int) -> tuple[Attendance, State]:
        came, then = inner.step(_unpacked(state), round)
        same = np.array_equal(came.cohort, state["available"])
        queue = state["queue"] if same else state["queue"][:0]
        cohort, queue = take(queue, came.cohort, per_round, generator(seed, purpose, round))
        delivered = cohort
        if came.delivered is not came.cohort:
            delivered = np.intersect1d(cohort, came.delivered, assume_unique=True)
        after = {"available": came.cohort, "queue": queue} | _packed(then)
        return Attendance(cohort, delivered), after

    return Participation(
        f"sampled({inner.name})",
        inner.clients,
        init,
        step,
        rates=_rates(inner, per_round),
        among=lambda rows: sampled(restrict(inner, rows), per_round, seed),
    )


def take(queue: Rows, available: Rows, most: int, draws: Generator) -> tuple[Rows, Rows]:
    """This round's clients, sorted, and the queue that they leave."""
    number = min(most, len(available))
    if len(queue) >= number:
        return np.sort(queue[:number]), queue[number:]
    # The last of one pass and the first of the next share a round, in which nobody comes twice:
    # those who end the pass keep their place in the next one, but are passed over this time.
    fresh = draws.permutation(available)
    first = fresh[~np.isin(fresh, queue)][: number - len(queue)]
    return np.sort(np.concatenate([queue, first])), fresh[~np.isin(fresh, first)]


def _rates(inner: Participation, per_round: int) -> NDArray[np.float64] | None:
    """Where availability repeats: all those available are alike, so each has m/|A| of a round."""
    if inner.period is None:
        return None
    rates = np.zeros(inner.clients)
    for came in inner.rounds(inner.period):
        if len(came.cohort):
            rates[came.delivered] += min(1, per_round / len(came.cohort))
    return rates / inner.period


def _packed(inner: State) -> State:
    return {_INNER + name: value for name, value in inner.items()}


def _unpacked(state: State) -> State:
    return {n.removeprefix(_INNER): v for n, v in state.items() if n.startswith(_INNER)}
