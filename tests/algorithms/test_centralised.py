"""Centralised SGD is plain SGD on everything, written out here."""

import numpy as np
import pytest
from tests.conformance.worlds import path, quadratic, walk

from turnout.algorithms import centralised
from turnout.engine import batches


def test_by_hand() -> None:
    # Half the way to the mean of all data, 2, whoever comes: 8 → 5 → 3.5 → 2.75
    method = centralised(steps=1, batch_size=None, lr=0.5)
    assert walk(method, [0, 4], [[0, 0], [1, 0], [1, 1]], 8) == [5, 3.5, 2.75]


def test_clients_with_more_data_count_for_more() -> None:
    # 0 and three times 4: the mean is 3. 8 → 5.5
    method = centralised(steps=1, batch_size=None, lr=0.5)
    assert walk(method, [0, [4, 4, 4]], [[1, 1]], 8) == [5.5]


@pytest.mark.parametrize(("steps", "batch_size"), [(4, 3), (None, 3)])
def test_it_is_sgd_by_hand_on_the_same_batches(steps, batch_size) -> None:
    z = np.arange(8.0) ** 2
    method = centralised(steps=steps, batch_size=batch_size, lr=0.1)
    world = quadratic([z[:3], z[3:4], z[4:]], [[0, 0, 0]])
    run = path(method, world, 3, 5.0, seed=2)
    x = 5.0
    for t in range(3):
        count = np.array([4 if steps else 3])  # an epoch of 8 samples in threes: 3, 3, 2
        drawn = batches.draw([(0, 8)], count, batch_size, 2, t, [0], "server batches")
        for k in range(count[0]):
            x -= 0.1 * np.mean(x - z[drawn.index[0, k, : drawn.sizes[0, k]].numpy()])
        assert run[t, 0] == pytest.approx(x, rel=1e-12)
