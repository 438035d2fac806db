"""Weight rules that need no history. FedAU's, which does, is in `turnout.algorithms.fedau`."""

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from turnout.algorithm import Divisor, Rows, State, WeightRule, per_client
from turnout.errors import InputError, require


def _stateless(weigh_rows: Callable[[Rows], NDArray[np.float64]], divisor: Divisor) -> WeightRule:
    return WeightRule(
        init=lambda clients: {},
        weigh=lambda state, round, rows: weigh_rows(rows),
        observe=lambda state, round, rows: state,
        divisor=divisor,
    )


def uniform(divisor: Divisor) -> WeightRule:
    """ω = 1 for everybody."""
    return _stateless(lambda rows: np.ones(len(rows)), divisor)


def inverse(p: ArrayLike) -> WeightRule:
    """ω_n = 1 / p_n for known participation probabilities."""
    rates = np.array(p, dtype=np.float64)  # a copy: the caller may go on with p
    require(rates.ndim == 1, "p", rates.shape, "one probability a client")
    for n in np.flatnonzero(~((rates > 0) & (rates <= 1)))[:1]:
        raise InputError(
            f"p[{n}] is {rates[n]:g}; it must be above 0 and at most 1, since 1/p is asked for "
            "(clients that never come need server assistance)"
        )

    def weigh(rows: Rows) -> NDArray[np.float64]:
        with np.errstate(over="ignore"):  # Whoever trains with an infinite weight is told of it.
            return 1 / rates[rows]

    def init(clients: int) -> State:
        require(
            clients == len(rates), "p", f"{len(rates)} values", f"one for each of {clients} clients"
        )
        return {}

    return _stateless(weigh, per_client)._replace(init=init)
