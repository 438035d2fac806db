"""Partitions: every sample once, and the shape that each promises."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from turnout.data.partition import (
    class_mix,
    classes_covered,
    dirichlet,
    iid,
    natural,
    shards,
    similarity,
)
from turnout.data.pool import Partition
from turnout.errors import InputError

quick = settings(max_examples=60, deadline=None)
seeds = st.integers(0, 2**32)


@st.composite
def labelled(draw, min_clients: int = 1):
    """Labels of some classes (not always contiguous, all present) and a number of clients."""
    classes = draw(st.integers(1, 8))
    sizes = draw(st.lists(st.integers(1, 30), min_size=classes, max_size=classes))
    labels = np.repeat(np.arange(classes) * 2 + 1, sizes)
    labels = np.random.default_rng(draw(seeds)).permutation(labels)
    clients = draw(st.integers(min(min_clients, len(labels)), len(labels)))
    return labels, clients


def check_everything_once(partition: Partition, samples: int, clients: int) -> None:
    assert sorted(partition.order.tolist()) == list(range(samples))
    assert partition.clients == clients
    assert partition.sizes.sum() == samples
    assert partition.sizes.min() >= 1


@quick
@given(st.integers(1, 300), st.data(), seeds)
def test_iid_uses_every_sample_once_and_evenly(samples, data, seed) -> None:
    clients = data.draw(st.integers(1, samples))
    partition = iid(samples, clients, seed)
    check_everything_once(partition, samples, clients)
    assert np.ptp(partition.sizes) <= 1


@quick
@given(labelled(), st.sampled_from([1e-3, 0.1, 1.0, 100.0]), seeds)
def test_dirichlet_uses_every_sample_once(case, alpha, seed) -> None:
    labels, clients = case
    check_everything_once(dirichlet(labels, clients, alpha, seed), len(labels), clients)


@quick
@given(labelled(), st.floats(0, 1), seeds)
def test_similarity_uses_every_sample_once(case, share, seed) -> None:
    labels, clients = case
    classes, sizes = np.unique(labels, return_counts=True)
    hosts = np.bincount(np.arange(clients) * len(classes) // clients, minlength=len(classes))
    if clients < len(classes) and share < 1:
        with pytest.raises(InputError, match="at least the number of classes"):
            similarity(labels, clients, share, seed)
    elif share * len(labels) < 0.5 and (hosts > sizes).any():
        with pytest.raises(InputError, match="without samples"):
            similarity(labels, clients, share, seed)
    elif share * len(labels) >= clients or share * len(labels) < 0.5:
        # In between it depends on which samples the spread takes and to whom they go.
        partition = similarity(labels, clients, share, seed)
        check_everything_once(partition, len(labels), clients)


@quick
@given(labelled(), st.data(), seeds)
def test_shards_are_equal_and_never_repeat_a_sample(case, data, seed) -> None:
    labels, clients = case
    classes = len(np.unique(labels))
    p = data.draw(st.integers(1, classes))
    scarcest = np.unique(labels, return_counts=True)[1].min()
    if scarcest < clients * p // classes:
        with pytest.raises(InputError, match="number of shards"):
            shards(labels, clients, p, seed)
        return
    assume(scarcest >= -(-clients * p // classes))
    partition = shards(labels, clients, p, seed)
    assert len(set(partition.order.tolist())) == len(partition.order)
    assert np.ptp(partition.sizes) == 0
    assert partition.sizes[0] % p == 0
    for client in range(clients):
        assert len(np.unique(labels[partition.rows(client)])) <= p


@quick
@given(st.lists(st.sampled_from(["ann", "bob", "eve", "zoe"]), min_size=1, max_size=50))
def test_natural_follows_the_column(owners) -> None:
    column = np.array(owners)
    partition = natural(column)
    check_everything_once(partition, len(owners), len(set(owners)))
    for client, name in enumerate(sorted(set(owners))):
        assert set(column[partition.rows(client)]) == {name}


@pytest.mark.parametrize(
    "make",
    [
        lambda labels, seed: iid(len(labels), 7, seed),
        lambda labels, seed: dirichlet(labels, 7, 0.5, seed),
        lambda labels, seed: shards(labels, 7, 2, seed),
        lambda labels, seed: similarity(labels, 7, 0.3, seed),
    ],
)
def test_a_partition_belongs_to_its_seed(make) -> None:
    labels = np.arange(200) % 5
    first, again, other = make(labels, 1), make(labels, 1), make(labels, 2)
    assert np.array_equal(first.order, again.order)
    assert np.array_equal(first.offsets, again.offsets)
    assert not np.array_equal(first.order, other.order)


def test_dirichlet_cuts_each_class_in_proportion_to_the_drawn_mixes() -> None:
    """The mixes are drawn anew here, from the stream's definition, and the cuts compared."""
    from turnout.draws import generator

    labels, clients, alpha = np.repeat(np.arange(10), 5000), 50, 0.1
    partition = dirichlet(labels, clients, alpha, seed=4)
    mix = generator(4, "partition").dirichlet(np.full(10, alpha), clients)
    counts = class_mix(partition, labels, 10) * partition.sizes[:, None]
    assert np.abs(counts - mix / mix.sum(0) * 5000).max() <= 1.0 + 1e-9


@pytest.mark.parametrize(
    ("alpha", "low", "high"), [(0.1, 0.45, 0.75), (1.0, 0.2, 0.4), (1e4, 0.1, 0.11)]
)
def test_dirichlet_concentration(alpha, low, high) -> None:
    """The largest class's share: near one class for small α, even for large α."""
    labels = np.repeat(np.arange(10), 6000)
    mix = class_mix(dirichlet(labels, 250, alpha, seed=0), labels, 10)
    assert low < mix.max(1).mean() < high


def test_dirichlet_fills_empty_clients_with_what_they_would_have_had() -> None:
    # 30 samples for 30 clients: each must end up with exactly one.
    labels = np.arange(30) % 3
    assert dirichlet(labels, 30, 0.05, seed=0).sizes.tolist() == [1] * 30


def test_an_empty_client_gets_a_sample_of_the_class_that_it_weights_most() -> None:
    from turnout.data.partition import _feed_the_empty

    counts = np.array([[3, 1, 0], [0, 5, 2], [0, 0, 0], [0, 0, 0]])
    mix = np.array([[0.9, 0.1, 0.0], [0.0, 0.7, 0.3], [0.1, 0.3, 0.6], [0.2, 0.7, 0.1]])
    expected = [[3, 1, 0], [0, 4, 1], [0, 0, 1], [0, 1, 0]]
    assert _feed_the_empty(counts, mix).tolist() == expected


def test_the_samples_of_a_class_are_dealt_at_random() -> None:
    """Neither the first rows of a class to the first client, nor its last ones to nobody."""
    labels = np.repeat([0, 1], [1000, 500])
    partition = shards(labels, 2, 1, seed=0)
    of_zero = next(r for r in map(partition.rows, range(2)) if labels[r[0]] == 0)
    assert len(of_zero) == 500
    assert 200 < np.count_nonzero(of_zero < 500) < 300
    halves = shards(labels[:1000] + np.arange(1000) % 2, 2, 2, seed=0)
    assert 200 < np.count_nonzero(halves.rows(0) < 500) < 300


def test_shards_as_in_safari() -> None:
    """As many clients as classes: p shards of every class, p to a client."""
    labels = np.repeat(np.arange(10), 600)
    for p in (1, 2, 5, 10):
        partition = shards(labels, 10, p, seed=p)
        assert len(partition.order) == 6000
        assert partition.sizes.tolist() == [600] * 10
        counts = class_mix(partition, labels, 10) * 600
        assert np.allclose(counts % (600 // p), 0)
        assert counts.sum(0).tolist() == [600.0] * 10
    one_each = class_mix(shards(labels, 10, 1, seed=0), labels, 10)
    assert sorted(one_each.argmax(1)) == list(range(10))


def test_a_random_deal_covers_as_many_classes_as_the_papers_figures_imply() -> None:
    """p = 2, 10 clients: 6 of them cover 8.5 classes on average, 8 of them 9.7."""
    labels = np.repeat(np.arange(10), 20)
    deals = [shards(labels, 10, 2, seed) for seed in range(400)]
    for present, expected in ((6, 10 * (1 - 56 / 380)), (8, 10 * (1 - 12 / 380))):
        covered = [classes_covered(deal, labels, range(present)) for deal in deals]
        assert np.mean(covered) == pytest.approx(expected, abs=0.2)


def test_shards_for_more_clients_than_classes() -> None:
    """M = 150 as in the paper's Fashion-MNIST runs: 30 shards of each of 10 classes for p = 2."""
    labels = np.repeat(np.arange(10), 6000)
    partition = shards(labels, 150, 2, seed=0)
    assert partition.sizes.tolist() == [400] * 150
    assert len(partition.order) == 60_000
    counts = class_mix(partition, labels, 10) * 400
    assert set(np.unique(counts.round()).tolist()) <= {0.0, 200.0, 400.0}


def test_shards_leave_a_remainder_of_larger_classes() -> None:
    labels = np.repeat(np.arange(3), [10, 14, 11])
    partition = shards(labels, 3, 2, seed=0)
    assert partition.sizes.tolist() == [10] * 3  # shards of 10 // 2 = 5
    assert np.bincount(labels[partition.order]).tolist() == [10, 10, 10]
    # 7 clients × 2 shards over 3 classes: 5, 5 and 4 shards of 10 // 5 = 2.
    uneven = shards(labels, 7, 2, seed=0)
    assert sorted(np.bincount(labels[uneven.order])) == [8, 10, 10]


def test_similarity_has_one_majority_class_and_spreads_the_rest() -> None:
    labels = np.repeat(np.arange(10), 5000)
    partition = similarity(labels, 250, 0.05, seed=0)
    mix = class_mix(partition, labels, 10)
    assert mix.argmax(1).tolist() == [n * 10 // 250 for n in range(250)]
    # 0.95 of the own class, and a tenth of the 0.05 that is spread.
    assert mix.max(1).mean() == pytest.approx(0.955, abs=0.002)
    assert np.ptp(partition.sizes) <= 10
    pure = class_mix(similarity(labels, 250, 0.0, seed=0), labels, 10)
    assert np.array_equal(pure.max(1), np.ones(250))
    even = class_mix(similarity(labels, 50, 1.0, seed=0), labels, 10)
    assert np.abs(even - 0.1).max() < 0.05


def test_class_mix_and_coverage_by_hand() -> None:
    partition = Partition.of(np.array([0, 0, 1, 0, 1]), clients=2)
    targets = [2, 0, 0, 2, 0]
    assert class_mix(partition, targets, 3).tolist() == [[1 / 3, 0.0, 2 / 3], [1.0, 0.0, 0.0]]
    assert classes_covered(partition, targets) == 2
    assert classes_covered(partition, targets, [1]) == 1
    assert classes_covered(partition, targets, []) == 0


LABELS = np.arange(20) % 4


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: iid(5, 6, 0), "clients is 6; it must be from 1 to the number of samples, 5"),
        (lambda: iid(5, 0, 0), "clients is 0"),
        (lambda: dirichlet(LABELS, 3, 0.0, 0), "alpha is 0.0"),
        (lambda: dirichlet(LABELS, 21, 1.0, 0), "clients is 21"),
        (lambda: dirichlet(LABELS / 2, 3, 1.0, 0), "targets is 'float64"),
        (lambda: shards(LABELS, 4, 5, 0), "classes a client is 5; it must be from 1 to the 4"),
        (lambda: shards(LABELS, 4, 0, 0), "classes a client is 0"),
        (lambda: shards(LABELS, 20, 2, 0), "number of shards is 40"),
        (lambda: similarity(LABELS, 4, 1.5, 0), "similarity is 1.5"),
        (lambda: similarity(LABELS, 3, 0.1, 0), "clients is 3; it must be at least the number"),
        (lambda: similarity([0, 1, 1, 1, 1], 4, 0.0, 0), "leaves client 1 without samples"),
        (lambda: natural(None), "needs a client-id column"),
    ],
)
def test_refusals(make, message) -> None:
    with pytest.raises(InputError, match=message):
        make()
