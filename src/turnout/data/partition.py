"""Who gets which samples: i.i.d., Dirichlet, p classes a client, similarity, natural.

Each function gives every sample to exactly one client, except that `shards` may leave a remainder
aside to make all clients equally large, and gives every client at least one sample.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from turnout.data.pool import Partition
from turnout.draws import generator
from turnout.errors import InputError, require

Counts = NDArray[np.int64]


def iid(samples: int, clients: int, seed: int) -> Partition:
    """A random deal of all samples; sizes differ by one at most.

    >>> iid(10, 4, seed=0).sizes
    array([3, 3, 2, 2])
    """
    _check_clients(clients, samples)
    owner = np.arange(samples) % clients
    return Partition.of(generator(seed, "partition").permutation(owner), clients)


def dirichlet(targets: ArrayLike, clients: int, alpha: float, seed: int) -> Partition:
    """FedAU's: client n draws a class mix w_n ~ Dir(α), and class c is cut in proportion to w_nc.

    Every sample is used. A client that this leaves without any gets one: of the class that it
    weights most among those of which some client has one and can spare it, from the client that
    has most of that class.
    """
    labels = _labels(targets)
    _check_clients(clients, len(labels))
    require(alpha > 0, "alpha", alpha, "above 0")
    draw = generator(seed, "partition")
    classes, sizes = np.unique(labels, return_counts=True)
    mix = draw.dirichlet(np.full(len(classes), alpha), clients)
    # For a tiny α a whole row or column can underflow to 0; then its cut is an even one.
    mix = np.where(mix.sum(0) > 0, mix, 1.0)
    bounds = np.rint(np.cumsum(mix, 0) / mix.sum(0) * sizes).astype(np.int64)
    counts = np.diff(bounds, axis=0, prepend=0)
    return _deal(labels, classes, _feed_the_empty(counts, mix), draw)


def _feed_the_empty(counts: Counts, mix: NDArray[np.float64]) -> Counts:
    counts = counts.copy()
    totals = counts.sum(1)
    for client in np.flatnonzero(totals == 0):
        for c in np.argsort(-mix[client], kind="stable"):
            held = np.where(totals >= 2, counts[:, c], 0)
            donor = int(held.argmax())
            if held[donor]:
                counts[donor, c] -= 1
                counts[client, c] += 1
                totals[donor] -= 1
                totals[client] += 1
                break
    return counts


def shards(targets: ArrayLike, clients: int, classes_each: int, seed: int) -> Partition:
    """SAFARI's: classes are cut into shards, and p = `classes_each` of them are dealt to a client.

    There are clients · p shards of one size, equally many of each class (p of each when there are
    as many clients as classes; if it does not divide, classes drawn at random have one more). All
    clients therefore hold equally many samples, of at most p classes: the deal may give a client
    two shards of one class, as the coverage that the paper's figures imply suggests. The size is
    that of the scarcest class's share, so larger classes leave a remainder that nobody gets.
    """
    labels = _labels(targets)
    _check_clients(clients, len(labels))
    classes, sizes = np.unique(labels, return_counts=True)
    fits = 1 <= classes_each <= len(classes)
    require(
        fits, "classes a client", classes_each, f"from 1 to the {len(classes)} classes there are"
    )
    draw = generator(seed, "partition")
    cuts = np.full(len(classes), clients * classes_each // len(classes))
    cuts[draw.permutation(len(classes))[: clients * classes_each % len(classes)]] += 1
    size = int((sizes[cuts > 0] // cuts[cuts > 0]).min())
    require(
        size >= 1,
        "number of shards",
        clients * classes_each,
        f"few enough that the scarcest class, of {sizes.min()} samples, fills its share of them",
    )
    deck = draw.permutation(np.repeat(np.arange(len(classes)), cuts)).reshape(clients, -1)
    counts = np.zeros((clients, len(classes)), dtype=np.int64)
    np.add.at(counts, (np.arange(clients)[:, None], deck), size)
    return _deal(labels, classes, counts, draw)


def similarity(targets: ArrayLike, clients: int, share: float, seed: int) -> Partition:
    """Generalized FedAvg's: a `share` of the data at random, the rest by one majority class each.

    Client n's class is ⌊n·C/N⌋, so neighbours have the same one; the part of a class that is not
    spread is dealt evenly among its clients. Share 1 is i.i.d.
    """
    labels = _labels(targets)
    _check_clients(clients, len(labels))
    require(0 <= share <= 1, "similarity", share, "in [0, 1]")
    classes, which = np.unique(labels, return_inverse=True)
    enough = clients >= len(classes) or share == 1
    require(enough, "clients", clients, f"at least the number of classes, {len(classes)}")
    draw = generator(seed, "partition")
    majority = np.arange(clients) * len(classes) // clients
    shuffled = draw.permutation(len(labels))
    spread = round(share * len(labels))
    owner = np.full(len(labels), -1)
    owner[shuffled[:spread]] = draw.permutation(np.arange(spread) % clients)
    rest = shuffled[spread:]
    for c in range(len(classes)):
        rows, hosts = rest[which[rest] == c], np.flatnonzero(majority == c)
        if len(rows):
            owner[rows] = hosts[np.arange(len(rows)) % len(hosts)]
    partition = Partition.of(owner, clients)
    empty = np.flatnonzero(partition.sizes == 0)
    if len(empty):
        raise InputError(
            f"similarity {share} leaves client {empty[0]} without samples: class "
            f"{classes[majority[empty[0]]]} has fewer than its clients; use fewer clients"
        )
    return partition


def natural(owners: NDArray[Any] | None) -> Partition:
    """One client for each value of a client-id column, in sorted order.

    >>> natural(np.array(["b", "a", "b"])).sizes
    array([1, 2])
    """
    if owners is None:
        raise InputError(
            "partition 'natural' needs a client-id column; name it as `client` of the data set"
        )
    names, owner = np.unique(owners, return_inverse=True)
    return Partition.of(owner.astype(np.int64), len(names))


def class_mix(partition: Partition, targets: ArrayLike, classes: int) -> NDArray[np.float64]:
    """The share of each class in each client's data: [clients, classes], rows sum to 1."""
    return _table(partition, targets, classes) / np.maximum(partition.sizes, 1)[:, None]


def classes_covered(
    partition: Partition, targets: ArrayLike, clients: Sequence[int] | None = None
) -> int:
    """How many classes these clients (all, if None) hold between them.

    >>> classes_covered(Partition.of(np.array([0, 0, 1]), 2), [4, 7, 7], clients=[1])
    1
    """
    rows = range(partition.clients) if clients is None else clients
    held = [partition.rows(client) for client in rows]
    return len(np.unique(_labels(targets)[np.concatenate(held)])) if held else 0


def _table(partition: Partition, targets: ArrayLike, classes: int) -> Counts:
    labels = _labels(targets)[partition.order]
    owner = np.repeat(np.arange(partition.clients), partition.sizes)
    flat = np.bincount(owner * classes + labels, minlength=partition.clients * classes)
    return flat.reshape(partition.clients, classes)


def _deal(labels: Counts, classes: Counts, counts: Counts, draw: np.random.Generator) -> Partition:
    """Give client n `counts[n, c]` random samples of class c; the rest goes to nobody."""
    owner = np.full(len(labels), -1)
    for c, label in enumerate(classes):
        rows = draw.permutation(np.flatnonzero(labels == label))
        takers = np.repeat(np.arange(len(counts)), counts[:, c])
        owner[rows[: len(takers)]] = takers
    return Partition.of(owner, len(counts))


def _labels(targets: ArrayLike) -> Counts:
    labels = np.asarray(targets)
    whole = labels.ndim == 1 and labels.dtype.kind in "iu"
    require(whole, "targets", f"{labels.dtype} {labels.shape}", "one whole number a sample")
    return labels.astype(np.int64)


def _check_clients(clients: int, samples: int) -> None:
    right = f"from 1 to the number of samples, {samples}, so that everyone has one"
    require(1 <= clients <= samples, "clients", clients, right)
