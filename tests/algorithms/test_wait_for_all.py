"""Wait for all: the model moves once everybody has contributed, by all of it at once."""

import pytest
import torch
from tests.conformance.worlds import HALF, point, quadratic, walk

from turnout.algorithms import wait_full, wait_minibatch
from turnout.parts.local import Local
from turnout.simulator import Simulation, advance, begin


def test_by_hand() -> None:
    # Clients at 0 and 4, from 8, half the way. Client 0 comes twice before client 1 does and counts
    # once: 8, 8, then (−4 − 2)/2 → 5; both: (−2.5 − 0.5)/2 → 3.5; nobody, then client 1: it waits.
    trace = [[1, 0], [1, 0], [0, 1], [1, 1], [0, 0], [0, 1]]
    run = walk(wait_minibatch(local=HALF), [0, 4], trace, 8)
    assert run == [8, 8, 5, 3.5, 3.5, 3.5]


def test_with_a_server_step_size() -> None:
    assert walk(wait_minibatch(2.0, HALF), [0, 4], [[1, 1]], 8) == [2]


def test_it_is_the_first_update_of_a_window_that_counts() -> None:
    """Mini-batches of one differ between rounds, so the first can be told from the second."""
    local = Local(0.5, 1, None, 1)
    z = [list(range(100)), [0.0]]
    trace = [[1, 0], [1, 0], [0, 1]]
    run = walk(wait_minibatch(local=local), z, trace, 8)
    only_first = walk(wait_minibatch(local=local), z, [[1, 0], [0, 0], [0, 1]], 8)
    only_second = walk(wait_minibatch(local=local), z, [[0, 0], [1, 0], [0, 1]], 8)
    assert run[-1] == only_first[-1] != only_second[-1]


def test_full_batch_is_one_step_along_the_full_gradient() -> None:
    # Whatever the local steps: half the way to the means 0 and 4, from 8: (−4 − 2)/2 → 5
    local = Local(0.5, 7, None, 1)
    z = [[-1.0, 1.0], [3.0, 5.0]]
    assert walk(wait_full(local=local), z, [[1, 0], [0, 1]], 8) == [8, 5]


def test_one_that_never_comes_holds_the_model_for_ever() -> None:
    assert walk(wait_minibatch(local=HALF), [0, 4], [[1, 0]] * 5, 8) == [8] * 5


def test_a_lost_update_is_not_a_contribution() -> None:
    trace, asked = [[1, 0], [0, 0], [0, 1]], [[1, 0], [0, 1], [0, 1]]
    assert walk(wait_minibatch(local=HALF), [0, 4], trace, 8, asked=asked) == [8, 8, 5]


@pytest.mark.parametrize("recipe", [wait_minibatch, wait_full])
def test_a_window_is_known_to_the_state(recipe) -> None:
    simulation = Simulation.of(
        recipe(local=HALF),
        quadratic([0, 4], [[1, 0], [1, 0], [0, 1]]),
        point(),
        dtype=torch.float64,
    )
    progress = begin(simulation)
    delivered, contributed = [], []
    for _ in range(3):
        advance(simulation, progress)
        delivered.append(progress.server.delivered)
        contributed.append(progress.server.contributed.tolist())
    assert delivered == [1, 1, 0]
    assert contributed == [[True, False], [True, False], [False, False]]
