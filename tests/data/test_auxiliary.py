"""The server's auxiliary set."""

import numpy as np
import pytest
import torch

from turnout.data.auxiliary import auxiliary, mixed_in
from turnout.data.partition import shards
from turnout.data.pool import Pool
from turnout.errors import InputError


def population(n: int = 200) -> Pool:
    # The single feature is the row's number, so that samples can be recognised.
    return Pool(torch.arange(float(n))[:, None], torch.arange(n) % 4, classes=4)


def rows(pool: Pool) -> set[int]:
    return {int(x) for x in pool.inputs[:, 0]}


def test_no_sample_is_with_clients_and_server_at_once() -> None:
    clients, server = auxiliary(population(), 50, seed=0)
    assert len(server) == 50
    assert rows(clients) | rows(server) == set(range(200))
    assert not rows(clients) & rows(server)
    assert rows(auxiliary(population(), 50, seed=0)[1]) == rows(server)
    assert rows(auxiliary(population(), 50, seed=1)[1]) != rows(server)


def test_shared_leaves_the_clients_everything() -> None:
    train = population()
    clients, server = auxiliary(train, 200, seed=0, shared=True)
    assert clients is train
    assert rows(server) == set(range(200))


def test_samples_keep_their_labels() -> None:
    for pool in auxiliary(population(), 30, seed=2, mix=[1, 1, 1, 0]):
        assert torch.equal(pool.targets, pool.inputs[:, 0].long() % 4)


def test_a_shifted_mix_is_met_exactly() -> None:
    clients, server = auxiliary(population(), 10, seed=0, mix=[5, 3, 2, 0])
    assert torch.bincount(server.targets, minlength=4).tolist() == [5, 3, 2, 0]
    assert len(clients) == 190
    thirds = auxiliary(population(), 10, seed=0, mix=np.array([1, 1, 1, 0]) / 3)[1]
    assert sorted(torch.bincount(thirds.targets, minlength=4).tolist()) == [0, 3, 3, 4]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"size": 201}, "size of the auxiliary set is 201; it must be from 1 to 199"),
        ({"size": 200}, "from 1 to 199"),
        ({"size": 0}, "is 0"),
        ({"size": 201, "shared": True}, "from 1 to 200"),
        ({"size": 60, "mix": [1, 0, 0, 0]}, "asks for 60 samples of class 0; .* have 50"),
        ({"size": 5, "mix": [1, 2]}, "4 shares"),
        ({"size": 5, "mix": [1, -1, 1, 1]}, "mix of the auxiliary set"),
    ],
)
def test_refusals(arguments, message) -> None:
    with pytest.raises(InputError, match=message):
        auxiliary(population(), seed=0, **arguments)


def test_data_sharing_gives_every_client_copies_beside_its_own() -> None:
    clients, server = auxiliary(population(), 40, seed=0)
    dealt = shards(clients.targets, clients=8, classes_each=1, seed=0)
    pool, mixed = mixed_in(clients, dealt, server, 0.25, seed=0)
    lent = []
    for client in range(8):
        own = rows(clients.take(dealt.rows(client)))
        held = rows(pool.take(mixed.rows(client)))
        assert own < held
        assert held - own <= rows(server)
        assert mixed.sizes[client] == dealt.sizes[client] + 10
        lent.append(frozenset(held - own))
    assert len(set(lent)) > 1  # each a draw of its own
    again = mixed_in(clients, dealt, server, 0.25, seed=0)[1]
    assert np.array_equal(again.order, mixed.order)


@pytest.mark.parametrize("share", [0.0, 1.1, -1.0])
def test_a_share_that_is_none(share) -> None:
    clients, server = auxiliary(population(), 40, seed=0)
    dealt = shards(clients.targets, clients=8, classes_each=1, seed=0)
    with pytest.raises(InputError, match=f"share is {share}; it must be above 0 and at most 1"):
        mixed_in(clients, dealt, server, share, seed=0)
