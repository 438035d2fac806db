"""The server's own small data set, for methods with assistance."""

from dataclasses import replace

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from turnout.data.pool import Partition, Pool
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


def mixed_in(
    train: Pool, dealt: Partition, server: Pool, share: float, seed: int
) -> tuple[Pool, Partition]:
    """Data sharing: each client holds copies of a random `share` of the server's samples, too.

    Zhao, Li, Lai, Suda, Civin, Chandra, "Federated Learning with Non-IID Data", 2018. It works for
    any method, and shows every client some of every class; it also hands the server's samples out.

    >>> from turnout.data.digits import digits
    >>> from turnout.data.partition import shards
    >>> left, server = auxiliary(digits()[0], 100, seed=0)
    >>> dealt = shards(left.targets, clients=10, classes_each=1, seed=0)
    >>> mixed_in(left, dealt, server, 0.2, seed=0)[1].sizes - dealt.sizes
    array([20, 20, 20, 20, 20, 20, 20, 20, 20, 20])
    """
    require(0 < share <= 1, "share", share, "above 0 and at most 1")
    count = max(1, round(share * len(server)))
    whole = replace(
        train,
        inputs=torch.cat([train.inputs, server.inputs]),
        targets=torch.cat([train.targets, server.targets]),
        owners=None,
    )
    rows = []
    for client in range(dealt.clients):
        draw = generator(seed, "data sharing", client=client)
        copies = len(train) + np.sort(draw.permutation(len(server))[:count])
        rows.append(np.concatenate([dealt.rows(client), copies]))
    offsets = np.concatenate([[0], np.cumsum([len(each) for each in rows])])
    return whole, Partition(np.concatenate(rows), offsets.astype(np.int64))


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
