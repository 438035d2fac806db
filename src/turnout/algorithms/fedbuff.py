"""FedBuff: clients work at their own pace, and the model moves by every K updates that arrive.

Nguyen, Malik, Zhan, Yousefpour, Rabbat, Malek, Huba, "Federated Learning with Buffered Asynchronous
Aggregation", AISTATS 2022.
"""

import numpy as np
from numpy.typing import NDArray

from turnout.algorithm import Algorithm, Gate, Lateness, per_delivered
from turnout.algorithms.recipe import recipe
from turnout.errors import require
from turnout.parts.local import Local
from turnout.parts.transform import sgd
from turnout.parts.weight import uniform


@recipe
def fedbuff(
    buffer: int = 10, power: float = 0.5, server_lr: float = 1.0, local: Local = Local()
) -> Algorithm:
    """FedBuff: once K updates have come, x += (η/K) Σ Δ_i / (1 + τ_i)^a, with τ_i how late each is.

    `buffer` is K and `power` a; τ_i is how often the model has moved since client i was sent it.
    """
    whole = buffer >= 1 and buffer == int(buffer)
    require(whole, "buffer", buffer, "a whole number from 1")
    full = Gate(ready=lambda tally: tally.delivered >= buffer, once=False)
    weight = uniform(per_delivered)
    late = polynomial(power)
    return Algorithm("fedbuff", weight, sgd(server_lr), local, gate=full, lateness=late)


def polynomial(power: float) -> Lateness:
    """1/(1 + τ)^a.

    >>> polynomial(0.5)(np.array([0, 3]))
    array([1. , 0.5])
    """
    require(0 <= power < np.inf, "power", power, "a finite number, 0 or more")

    def factor(late: NDArray[np.int64]) -> NDArray[np.float64]:
        found: NDArray[np.float64] = np.power(1.0 + late, -power)
        return found

    return factor
