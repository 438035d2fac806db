"""The server's own small data set, for methods with assistance."""

from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from turnout.data.pool import Pool
from turnout.draws import generator
from turnout.errors import InputError, require


def auxiliary(
    train: Pool, size: int, seed: int, mix: ArrayLike | None = None, shared: bool = False
) -> tuple[Pool, Pool]:
    """(what is left for the clients, the server's set), for a set of `size` random samples.

    No sample is with a client and the server at once, as in SAFARI, unless `shared`: then clients
    keep everything and the server holds copies. `mix` gives the share of each class in the
    server's set, for a server whose data are shifted from the population's; None is a plain draw.

    >>> from turnout.data.digits import digits
    >>> clients, server = auxiliary(digits()[0], 100, seed=0)
    >>> len(clients), len(server)
    (1338, 100)
    """
    most = len(train) if shared else len(train) - 1
    right = f"from 1 to {most}, as there are {len(train)} training samples"
    require(1 <= size <= most, "size of the auxiliary set", size, right)
    draw = generator(seed, "auxiliary set")
    if mix is None:
        rows = np.sort(draw.permutation(len(train))[:size])
    else:
        rows = _rows_of_mix(train, size, np.asarray(mix, dtype=np.float64), draw)
    server = replace(train.take(rows), name="auxiliary set")
    if shared:
        return train, server
    return train.take(np.setdiff1d(np.arange(len(train)), rows)), server


def _rows_of_mix(
    train: Pool, size: int, mix: NDArray[np.float64], draw: np.random.Generator
) -> NDArray[np.int64]:
    classes = train.classes or 0
    good = mix.shape == (classes,) and classes > 0 and bool((mix >= 0).all()) and mix.sum() > 0
    require(good, "mix of the auxiliary set", mix.tolist(), f"{classes} shares ≥ 0, not all 0")
    # Largest remainders: counts are whole and sum to the size.
    exact = mix / mix.sum() * size
    counts = np.floor(exact).astype(np.int64)
    counts[np.argsort(counts - exact, kind="stable")[: size - counts.sum()]] += 1
    labels = train.targets.numpy()
    chosen = []
    for c, count in enumerate(counts):
        rows = np.flatnonzero(labels == c)
        if count > len(rows):
            raise InputError(
                f"mix of the auxiliary set asks for {count} samples of class {c}; the training "
                f"data have {len(rows)}"
            )
        chosen.append(draw.permutation(rows)[:count])
    return np.sort(np.concatenate(chosen))
