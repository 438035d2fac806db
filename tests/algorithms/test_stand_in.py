"""The server in place of missing clients: by hand, by a plain reference, and where it is another method."""

import numpy as np
import pytest
import torch
from tests.algorithms.naive import Intervals, moved, trace
from tests.conformance.worlds import HALF, path, quadratic, walk

from turnout.algorithms import (
    average_all,
    fedau,
    fedavg,
    fedkeep,
    focus,
    mifa,
    safari,
    scaffold,
    server_only,
    stand_in,
    wait_minibatch,
)
from turnout.costs import costs
from turnout.errors import InputError
from turnout.parts.local import Halve, Local
from turnout.round import start

ALL = average_all(local=HALF)


def test_by_hand() -> None:
    # Clients at 0 and 4 go half the way, and so does the server, to 8. From 0:
    # client 1:  ½·2 + ½·4   → 3      the server for client 0
    # both:      ½·(−1.5) + ½·0.5 → 2.5
    # nobody:    ½·5.5       → 5.25   the server for both
    trace = [[0, 1], [1, 1], [0, 0]]
    assert walk(stand_in(inner=ALL), [0, 4], trace, 0, server=[8]) == [3, 2.5, 5.25]
    # For the unseen alone: client 0 has come by the second round, and from then on nobody is missing.
    run = walk(stand_in("unseen", ALL), [0, 4], trace, 0, server=[8])
    assert run == [3, 2.5, 2.5]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("missing", ["absent", "unseen"])
def test_the_formula_on_random_traces(seed, missing) -> None:
    z, mask = trace(seed)
    mask[:, 2] = False
    N, lr, steps, own, eta = len(z), 0.1, 3, 2.5, 0.8
    x, seen, expected = 3.0, np.zeros(N, dtype=bool), []
    for came in mask:
        seen |= came
        here = came if missing == "absent" else seen
        sums = sum(moved(x, z[n], lr, steps) for n in np.flatnonzero(came))
        x += eta * sums / N + np.mean(~here) * moved(x, own, lr, steps) * eta
        expected.append(x)
    inner = average_all(eta, Local(lr, steps, None, None))
    run = walk(stand_in(missing, inner), z, mask, 3.0, server=[own])
    np.testing.assert_allclose(run, expected, rtol=1e-9)


def test_with_fedaus_weights_for_those_who_come() -> None:
    z, mask = trace(1)
    mask[:, 0] = False
    x, seen, weights, expected = 3.0, np.zeros(len(z), dtype=bool), Intervals(len(z), 5), []
    for came in mask:
        seen |= came
        sums = sum(weights.weight[n] * moved(x, z[n], 0.1, 2) for n in np.flatnonzero(came))
        x += sums / len(z) + np.mean(~seen) * moved(x, 1.5, 0.1, 2)
        weights.after(came)
        expected.append(x)
    inner = fedau(cutoff=5, local=Local(0.1, 2, None, None))
    run = walk(stand_in("unseen", inner), z, mask, 3.0, server=[1.5])
    np.testing.assert_allclose(run, expected, rtol=1e-9)


@pytest.mark.parametrize("inner", [ALL, fedau(local=HALF), fedkeep(local=HALF), mifa(local=HALF)])
def test_nobody_is_missing_where_all_come(inner) -> None:
    z, mask = trace(0)
    everybody = np.ones_like(mask)
    for missing in ("absent", "unseen"):
        found = walk(stand_in(missing, inner), z, everybody, 3.0, server=[7])
        assert found == walk(inner, z, everybody, 3.0)


def test_where_nobody_comes_it_is_training_at_the_server_alone() -> None:
    """The same mini-batches, too."""
    world = quadratic([0, 4], [[0, 0]], server=[1, 5, 7, 8, 20])
    inner = average_all(local=Local(0.1, 4, None, 2))
    alone = server_only(server_steps=4, server_batch=2, assistance_lr=0.1)
    found, expected = (
        path(method, world, 6, 3.0, seed=5) for method in (stand_in(inner=inner), alone)
    )
    np.testing.assert_array_equal(found, expected)


def test_where_it_has_the_missing_clients_data_it_is_full_participation() -> None:
    """Two of four clients never come, and the server holds what they hold."""
    mask = [[1, 1, 0, 0]]
    whole = Local(0.2, 1, None, None)
    found = path(
        stand_in(inner=average_all(local=whole)),
        quadratic([0, 4, 9, 11], mask, server=[9, 11]),
        40,
        3.0,
    )
    expected = path(fedavg(local=whole), quadratic([0, 4, 9, 11], [[1, 1, 1, 1]]), 40, 3.0)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_the_servers_step_size_follows_the_clients_schedule() -> None:
    local = Local(Halve(0.5, every=1), 1, None, None)
    # 8 → ½ → 4 → ¼ → 3 → ⅛ → 2.625, towards 0
    run = walk(stand_in(inner=average_all(local=local)), [1, 1], [[0, 0]] * 3, 8, server=[0])
    assert run == [4, 3, 2.625]


@pytest.mark.parametrize("inner", [fedavg(), wait_minibatch(), scaffold()])
def test_methods_that_leave_no_weight_over_are_refused(inner) -> None:
    with pytest.raises(
        InputError, match=f"inner is {inner.name}, in which those who come share all"
    ):
        stand_in(inner=inner)


@pytest.mark.parametrize("inner", [ALL, fedkeep()])
def test_it_costs_a_vector_at_the_server_and_sums_are_still_enough(inner) -> None:
    plain, helped = (
        costs(method, start(method, torch.zeros(10), 4))
        for method in (inner, stand_in(inner=inner))
    )
    assert helped == plain._replace(server=plain.server + 40)
    assert stand_in(inner=inner).sums_only


def test_methods_that_the_server_cannot_follow_are_refused() -> None:
    with pytest.raises(InputError, match="the local rule of focus is push"):
        stand_in(inner=focus())
    with pytest.raises(InputError, match="inner is safari, in which the server trains already"):
        stand_in(inner=safari(inner=ALL))
    with pytest.raises(InputError, match="inner is stand_in, in which the server trains already"):
        safari(inner=stand_in())


def test_bad_settings() -> None:
    with pytest.raises(InputError, match="missing 'late' is not known"):
        stand_in("late")
    with pytest.raises(
        InputError, match="auxiliary data of the server is none; stand_in must have"
    ):
        walk(stand_in(inner=ALL), [0, 4], [[1, 1]], 8)
