"""Participation rates that follow from the clients' data, as in the experiments of FedAU."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from turnout.draws import generator
from turnout.errors import require
from turnout.participation.inputs import array, positive, whole


def class_rates(
    mix: Sequence[Sequence[float]] | NDArray[Any],
    alpha: float = 0.1,
    mean: float = 0.1,
    floor: float | None = 0.02,
    seed: int = 0,
) -> NDArray[np.float64]:
    """p_n = ⟨mix_n, q⟩ · C · mean, with one q ~ Dir(alpha) over the C classes.

    `mix` has a row a client: shares of the classes, or counts. The smaller alpha, the fewer the
    classes whose owners come often. The rates are raised to `floor` (None leaves them as they are)
    and cut at 1, so that their average is only about `mean`.

    >>> class_rates([[10, 0], [5, 5], [0, 10]], alpha=1e6).round(2).tolist()
    [0.1, 0.1, 0.1]
    """
    alpha = positive("alpha", alpha)
    mean = positive("mean", mean, most=1)
    floor = 0.0 if floor is None else positive("floor", floor, most=1, zero=True)
    shares = array("mix", mix, "a table of numbers, a row a client").astype(np.float64)
    require(
        shares.ndim == 2 and shares.size > 0, "shape of mix", shares.shape, "[clients, classes]"
    )
    for client, k in np.argwhere(~(np.isfinite(shares) & (shares >= 0)))[:1].tolist():
        field = f"mix of client {client}, class {k},"
        require(False, field, float(shares[client, k]), "a finite number of at least 0")
    total = shares.sum(axis=1, keepdims=True)
    for client in np.flatnonzero(total == 0)[:1].tolist():
        require(False, f"the sum of the mix of client {client}", 0, "above 0")
    classes = shares.shape[1]
    q = generator(whole("seed", seed), "class rates").dirichlet(np.full(classes, alpha))
    rates: NDArray[np.float64] = shares / total @ q * classes * mean
    return np.clip(rates, floor, 1, out=rates)
