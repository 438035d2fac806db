"""The server as a client that is always there, with the weight of those who are missing.

With server data one can train in place of clients now and then (`safari`), or beside them in each
round. Here the server does what a client does, from the same model, and its update counts for all
the clients that are away in the round, or for those that have never come at all. The first is the
plain way to keep an average over all N clients an average of N updates; the second leaves those who
come now and then to weights or memory, which can speak for them, and helps where nothing else can.
"""

from typing import Literal

from turnout.algorithm import Algorithm, Assistance, Share, Tally, per_client
from turnout.algorithms.fedavg import average_all
from turnout.algorithms.recipe import recipe
from turnout.errors import InputError, choose
from turnout.parts.assistance import as_a_client, assisted


def _absent(tally: Tally) -> int:
    return tally.population - tally.delivered


def _unseen(tally: Tally) -> int:
    return tally.population - tally.seen


_MISSING = {"absent": _absent, "unseen": _unseen}
_AROUND = average_all()


@recipe
def stand_in(
    missing: Literal["absent", "unseen"] = "absent", inner: Algorithm = _AROUND
) -> Algorithm:
    """The server stands in for missing clients: direction of `inner` + (m/N)·Δ_0.

    Δ_0 is what the server's data make of the same local training, and m how many clients are
    "absent" in the round, or "unseen" so far. `inner` divides by N, so that there is a weight that
    nobody has.
    """
    counted = _MISSING[choose("missing", missing, _MISSING)]
    if inner.weight.divisor is not per_client or inner.gate is not None:
        raise InputError(
            f"inner is {inner.name}, in which those who come share all of the weight; it must be a "
            "method that divides by the number of all clients, such as average_all or fedau"
        )
    share = Share(lambda state, tally, round, accuracy: (counted(tally) / tally.population, state))
    return assisted(inner, Assistance(as_a_client(inner), "beside", share=share))
