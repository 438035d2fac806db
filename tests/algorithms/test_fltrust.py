"""FLTrust: by hand, by its formula in plain numpy, and what no client can do to it."""

import numpy as np
import pytest
import torch
from tests.algorithms.naive import trace
from tests.conformance.worlds import HALF, attendance, path, point, pool, quadratic, walk

from turnout import simulate
from turnout.algorithms import fltrust, server_only
from turnout.algorithms.scaffold import control_variates
from turnout.costs import costs
from turnout.errors import InputError
from turnout.parts.local import Local
from turnout.round import start
from turnout.simulator import Simulation, advance, begin
from turnout.world import World

ALONE = server_only(server_steps=1, server_batch=None, assistance_lr=0.5)


def world(z, mask, own) -> World:
    """A client at each of these points of a space, and the server at its own."""
    offsets = np.arange(len(z) + 1)
    return World(pool(z), offsets, pool(z), attendance(mask), pool([own]))


def test_by_hand() -> None:
    # On a line trust is 1 or 0, and an update as long as the server's, which goes half the way to 6.
    # 8 → −1 for clients at 0 and 4, who want down too; nobody; client at 9 wants up: no trust.
    found = walk(fltrust(local=HALF), [0, 4, 9], [[1, 1, 0], [0, 0, 0], [0, 0, 1]], 8, server=[6])
    assert found == [7, 7, 7]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("eta", [1.0, 0.6])
def test_the_formula_in_the_plane(seed, eta) -> None:
    _, mask = trace(seed, clients=6)
    draw = np.random.default_rng(seed)
    z, own = draw.normal(size=(6, 3)) * 3, np.array([0.5, -1.0, 0.2])
    x, expected = np.full(3, 2.0), []
    for came in mask:

        def moved(goal, x=x):
            y = x.copy()
            for _ in range(2):
                y -= 0.3 * (y - goal)
            return y - x

        g0 = moved(own)
        up, down = np.zeros(3), 0.0
        for n in np.flatnonzero(came):
            g = moved(z[n])
            TS = max(0.0, g @ g0 / (np.linalg.norm(g) * np.linalg.norm(g0)))
            up += TS * np.linalg.norm(g0) / np.linalg.norm(g) * g
            down += TS
        if down:
            x = x + eta * up / down
        expected.append(x)
    local = Local(0.3, 2, None, None)
    found = path(fltrust(eta, local), world(z, mask, own), len(mask), np.full(3, 2.0))
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


def test_clients_that_have_the_servers_data_are_the_server() -> None:
    same = quadratic([6, 6], [[1, 0], [1, 1]], server=[6])
    found = path(fltrust(local=HALF), same, 6, 8.0)
    np.testing.assert_array_equal(found, path(ALONE, same, 6, 8.0))


def test_no_update_moves_the_model_further_than_the_servers_own() -> None:
    for far in (-1e3, -1e9):
        assert walk(fltrust(local=HALF), [0, far], [[1, 1]], 8, server=[6])[0] == pytest.approx(7)


def test_clients_count_for_what_they_are_trusted() -> None:
    """At a right angle, along the server's way, and against it."""
    z = np.array([[0.0, 4.0], [3.0, 0.0], [-1.0, 0.0]])
    space = world(z, [[1, 1, 1]], [2.0, 0.0])
    run = simulate(fltrust(local=HALF), space, point(2), 1, start=torch.zeros(2))
    assert run.x.tolist() == [1, 0]
    assert [client["effective_weight"] for client in run.clients] == [0, 3, 0]
    assert (run.history[0]["weight_mean"], run.history[0]["weight_max"]) == (
        pytest.approx(1 / 3),
        1,
    )


def test_a_server_that_has_nothing_to_learn_trusts_nobody() -> None:
    there = quadratic([0, 4], [[1, 1]], server=[8])
    simulation = Simulation.of(fltrust(local=HALF), there, point(), dtype=torch.float64)
    progress = begin(simulation, torch.tensor([8.0]))
    advance(simulation, progress)
    assert progress.server.x.item() == 8


def test_it_must_see_each_update() -> None:
    method = fltrust()
    assert not method.sums_only
    asked = costs(method, start(method, torch.zeros(10), 4))
    assert (asked.server, asked.client, asked.down, asked.up) == (44, 0, 40, 40)


def test_rules_that_the_server_cannot_follow_are_refused() -> None:
    with pytest.raises(InputError, match="the local rule of fltrust is control_variates"):
        fltrust(local=Local(rule=control_variates()))
