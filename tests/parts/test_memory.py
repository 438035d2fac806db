"""Memories: what they recall, and that the mean beside them is the mean of what they hold."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from turnout.algorithm import Tally, once_all_seen, per_client, per_delivered, per_seen
from turnout.parts.memory import begin, client_held, clusters, table

N, DIM = 6, 3
X = torch.zeros(DIM, dtype=torch.float64)
OF = np.array([1, 0, 1, 2, 2, 1])


def rounds(seed: int, count: int = 8):
    """Random rounds: who delivers, and what."""
    draw = np.random.default_rng(seed)
    for _ in range(count):
        rows = np.flatnonzero(draw.random(N) < draw.choice([0, 0.3, 1.0]))
        yield rows, torch.from_numpy(draw.normal(size=(len(rows), DIM)))


@given(st.integers(0, 10**6))
@settings(max_examples=30)
def test_a_table_holds_each_clients_latest_update_and_their_mean(seed) -> None:
    memory, expected = table(), np.zeros((N, DIM))
    state = begin(memory, N, X)
    for rows, updates in rounds(seed):
        np.testing.assert_allclose(memory.recall(state, rows), expected[rows])
        before = state["mean"].clone()
        for half in (slice(0, 2), slice(2, None)):
            state = memory.store(state, rows[half], updates[half])
        assert torch.equal(state["mean"], before)  # until the round is settled
        expected[rows] = updates
        state = memory.settle(state)
        np.testing.assert_allclose(state["mean"], expected.mean(0), atol=1e-12)


@given(st.integers(0, 10**6))
@settings(max_examples=30)
def test_clients_hold_what_a_table_would(seed) -> None:
    held, server = client_held(), table()
    assert held.recall is None
    a, b, own = begin(held, N, X), begin(server, N, X), torch.zeros(N, DIM, dtype=torch.float64)
    for rows, updates in rounds(seed):
        a = held.settle(held.store(a, rows, updates - own[rows]))
        b = server.settle(server.store(b, rows, updates))
        own[rows] = updates
        torch.testing.assert_close(a["mean"], b["mean"], rtol=1e-11, atol=1e-12)
    assert sum(v.numel() for v in a.values() if isinstance(v, torch.Tensor)) == 2 * DIM


@given(st.integers(0, 10**6))
@settings(max_examples=30)
def test_a_cluster_holds_the_mean_of_its_members_updates(seed) -> None:
    memory, expected = clusters(OF), np.zeros((3, DIM))
    state = begin(memory, N, X)
    for rows, updates in rounds(seed):
        fresh = expected.copy()
        for half in (slice(0, 2), slice(2, None)):
            # Members of one cluster may come in different blocks: none sees the other's update.
            np.testing.assert_allclose(memory.recall(state, rows[half]), expected[OF[rows[half]]])
            state = memory.store(state, rows[half], updates[half])
        for cluster in set(OF[rows]):
            fresh[cluster] = updates.numpy()[OF[rows] == cluster].mean(0)
        expected = fresh
        state = memory.settle(state)
        np.testing.assert_allclose(memory.recall(state, np.arange(N)), expected[OF], atol=1e-12)
        np.testing.assert_allclose(state["mean"], expected[OF].mean(0), atol=1e-12)


@pytest.mark.parametrize("memory", [table(), clusters(OF)], ids=["table", "clusters"])
def test_what_is_recalled_is_a_copy(memory) -> None:
    state = begin(memory, N, X)
    rows = np.array([0, 2])
    memory.recall(state, rows).fill_(7.0)
    assert not bool(memory.recall(state, rows).any())
    updates = torch.ones(2, DIM, dtype=torch.float64)
    state = memory.settle(memory.store(state, rows, updates))
    updates.fill_(7.0)
    assert not bool((memory.recall(state, rows) == 7).any())


@pytest.mark.parametrize("memory", [table(), clusters(OF), client_held()])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_everything_has_the_models_precision(memory, dtype) -> None:
    state = begin(memory, N, X.to(dtype))
    state = memory.store(state, np.array([0, 3]), torch.ones(2, DIM, dtype=dtype))
    state = memory.settle(state)
    assert {v.dtype for v in state.values() if isinstance(v, torch.Tensor)} == {dtype}


def test_a_cluster_without_members_is_no_obstacle() -> None:
    memory = clusters([0, 3, 3])
    state = begin(memory, 3, X)
    state = memory.store(state, np.array([1]), torch.ones(1, DIM, dtype=torch.float64))
    assert memory.settle(state)["mean"].tolist() == pytest.approx([2 / 3] * DIM)


def test_divisors() -> None:
    some, all_seen = Tally(population=10, delivered=3, seen=7), Tally(10, 3, 10)
    assert per_delivered(some) == 3
    assert per_client(some) == 10
    assert per_seen(some) == 7
    assert once_all_seen(some) == 0
    assert once_all_seen(all_seen) == 10
