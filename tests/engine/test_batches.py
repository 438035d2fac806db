"""Mini-batches: without replacement, every sample once an epoch, padding that never counts."""

from itertools import chain

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from turnout.engine.batches import Batches, count_steps, draw


def counted(drawn: Batches, row: int) -> list[list[int]]:
    """The samples that count in each step of one client."""
    return [
        drawn.index[row, step, : drawn.sizes[row, step]].tolist()
        for step in range(drawn.steps[row])
    ]


def one(held: int, steps: int, batch_size: int | None, start: int = 100, **more) -> Batches:
    at = {"seed": 0, "round": 0, "clients": [0], **more}
    return draw([(start, start + held)], np.array([steps]), batch_size, **at)


@given(
    st.integers(1, 40),
    st.integers(1, 4),
    st.one_of(st.none(), st.integers(1, 50)),
    st.integers(0, 10**6),
)
def test_every_sample_once_an_epoch(held, epochs, batch_size, seed) -> None:
    steps = int(count_steps(np.array([held]), None, epochs, batch_size)[0])
    groups = counted(one(held, steps, batch_size, seed=seed), 0)
    batch = held if batch_size is None else min(batch_size, held)
    a_pass = -(-held // batch)
    assert len(groups) == steps == epochs * a_pass
    for epoch in range(epochs):
        mine = groups[epoch * a_pass : (epoch + 1) * a_pass]
        assert sorted(chain.from_iterable(mine)) == list(range(100, 100 + held))
        assert [len(group) for group in mine[:-1]] == [batch] * (a_pass - 1)
        assert len(mine[-1]) == held - (a_pass - 1) * batch  # the last one may be smaller


def test_epochs_are_shuffled_anew() -> None:
    first, second = counted(one(20, 2, 20), 0)
    assert sorted(first) == sorted(second)
    assert first != second


def test_a_round_that_ends_amid_an_epoch_has_no_sample_twice_in_it() -> None:
    groups = counted(one(10, 3, 3), 0)
    assert len(set(chain.from_iterable(groups))) == 9


@pytest.mark.parametrize("batch_size", [1, 3, 4, 7, 50, None])
def test_places_beyond_a_batch_repeat_its_first_sample(batch_size) -> None:
    samples = [(0, 9), (9, 13), (13, 14)]
    counts = np.array([6, 6, 6])
    drawn = draw(samples, counts, batch_size, seed=1, round=2, clients=[5, 3, 8])
    width = 9 if batch_size is None else min(batch_size, 9)
    assert drawn.index.shape == (3, 6, width)
    for row, (start, stop) in enumerate(samples):
        assert bool(((drawn.index[row] >= start) & (drawn.index[row] < stop)).all())
        for step in range(6):
            size = drawn.sizes[row, step]
            beyond = drawn.index[row, step, size:]
            assert bool((beyond == drawn.index[row, step, 0]).all())


@given(
    st.integers(0, 100),
    st.lists(st.integers(1, 12), min_size=1, max_size=5),
    st.one_of(st.none(), st.integers(1, 6)),
    st.integers(1, 3),
)
def test_draws_do_not_depend_on_company(round, sizes, batch_size, epochs) -> None:
    """Client 5's batches are the same alone and in a block, wherever it stands there."""
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    clients = [5 + 3 * n for n in range(len(sizes))]
    counts = count_steps(np.array(sizes), None, epochs, batch_size)
    order = np.argsort(-counts, kind="stable")
    ranges = [(int(offsets[n]), int(offsets[n + 1])) for n in order]
    block = draw(ranges, counts[order], batch_size, 7, round, [clients[n] for n in order])
    for row, n in enumerate(order):
        alone = draw([ranges[row]], counts[[n]], batch_size, 7, round, [clients[n]])
        assert counted(block, row) == counted(alone, 0)
        steps = alone.steps[0]
        assert torch.equal(block.keys[row, :steps], alone.keys[0])


def test_draws_depend_on_seed_round_client_and_purpose() -> None:
    def order(**more) -> list[list[int]]:
        return counted(one(30, 2, 15, **more), 0)

    usual = order()
    assert order() == usual
    for more in ({"seed": 1}, {"round": 1}, {"clients": [1]}, {"purpose": "server batches"}):
        assert order(**more) != usual


def test_where_the_samples_lie_does_not_matter() -> None:
    here, there = one(9, 3, 4, start=0), one(9, 3, 4, start=1000)
    assert torch.equal(here.index + 1000, there.index)
    assert torch.equal(here.keys, there.keys)


def test_keys_differ_between_steps() -> None:
    keys = one(4, 50, 2).keys.flatten().tolist()
    assert len(set(keys)) == 50
    assert min(keys) >= 0


@pytest.mark.parametrize(
    ("steps", "epochs", "batch_size", "expected"),
    [
        (5, None, 16, [5, 5, 5]),
        (None, 1, 16, [1, 1, 7]),
        (None, 2, 16, [2, 2, 14]),
        (None, 3, None, [3, 3, 3]),
        (None, 1, 1, [1, 16, 100]),
    ],
)
def test_steps_and_epochs(steps, epochs, batch_size, expected) -> None:
    assert count_steps(np.array([1, 16, 100]), steps, epochs, batch_size).tolist() == expected


def test_a_part_of_a_block_is_no_wider_than_it_needs_and_draws_the_same() -> None:
    samples = [(0, 12), (12, 17), (17, 19)]
    counts = count_steps(np.array([12, 5, 2]), None, 1, 5)
    whole = draw(samples, counts, 5, 0, 0, [0, 1, 2])
    assert whole.steps == (3, 1, 1)
    part = whole.part(slice(2, 3))
    assert part.index.shape == (1, 1, 2)
    assert part.keys.shape == (1, 1)
    assert counted(part, 0) == counted(whole, 2)
    both = whole.part(slice(0, 2))
    assert both.index.shape == (2, 3, 5)
    assert [counted(both, row) for row in (0, 1)] == [counted(whole, row) for row in (0, 1)]
