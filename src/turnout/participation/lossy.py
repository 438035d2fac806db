"""Updates that are computed and never arrive."""

from dataclasses import replace

from turnout.participation.coin import leading, toss
from turnout.participation.inputs import Chances, chances, whole
from turnout.participation.part import own_purpose, restrict
from turnout.participation.process import Attendance, Participation, Rows, State


def lossy(inner: Participation, loss: Chances, seed: int = 0) -> Participation:
    """Another process whose updates get lost, with probability `loss` (for all, or a client).

    >>> from turnout.participation.always import always
    >>> process = lossy(always(2), loss=[0.0, 1.0])
    >>> process.mask(1).tolist(), process.mask(1, cohort=True).tolist()
    ([[True, False]], [[True, True]])
    """
    loss = chances("loss", loss, inner.clients)
    bits = leading(loss)
    seed = whole("seed", seed)
    purpose = own_purpose("lossy", inner)

    def step(state: State, round: int) -> tuple[Attendance, State]:
        came, then = inner.step(state, round)
        lost = toss(bits, loss.item, seed, purpose, round)
        return came._replace(delivered=came.delivered[~lost[came.delivered]]), then

    def among(rows: Rows) -> Participation:
        return lossy(restrict(inner, rows), loss[rows], seed)

    return replace(
        inner,
        name=f"lossy({inner.name})",
        step=step,
        rates=None if inner.rates is None else inner.rates * (1 - loss),
        period=None,
        among=among,
    )
