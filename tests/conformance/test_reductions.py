"""Methods that must be the same under some setting: exact reductions, on the same trace."""

from copy import deepcopy
from dataclasses import replace

import numpy as np
import pytest
import torch
from tests.conformance.cases import DELIVERED, LOCAL, ROUNDS, classification, in_process, logistic

from turnout import algorithms as a
from turnout.algorithm import Algorithm
from turnout.parts.local import proximal, sgd
from turnout.simulator import Simulation, advance, begin

ALWAYS = np.ones_like(DELIVERED)
CLIENTS = DELIVERED.shape[1]
GROUPS = (0, 0, 1, 2, 1, 0)


def run(algorithm: Algorithm, delivered=DELIVERED, rounds: int = ROUNDS) -> torch.Tensor:
    return torch.stack(in_process(algorithm, classification(delivered), logistic(), rounds))


def same(first: Algorithm, second: Algorithm, delivered=DELIVERED, rounds: int = ROUNDS) -> None:
    found, expected = run(first, delivered, rounds), run(second, delivered, rounds)
    torch.testing.assert_close(found, expected, rtol=1e-11, atol=1e-12)


FEDAVG = a.fedavg(local=LOCAL)


@pytest.mark.parametrize(
    "method",
    [
        a.average_all(local=LOCAL),
        a.known(np.ones(CLIENTS), local=LOCAL),
        a.fedau(cutoff=3, local=LOCAL),
        a.fedau(cutoff=None, local=LOCAL),
        a.fedau(cutoff=1, local=LOCAL),
        a.fedau(decay=0.5, local=LOCAL),
        a.fedau(groups=GROUPS, local=LOCAL),
        a.fedau(groups=GROUPS, decay=0.5, local=LOCAL),
        a.mifa(local=LOCAL),
        a.mifa("seen", local=LOCAL),
        a.mifa("wait", local=LOCAL),
        a.mifa(memory="client", local=LOCAL),
        a.fedvarp(local=LOCAL),
        a.amplified(period=3, factor=1.0, inner=FEDAVG),
        a.safari(q=1.0, inner=FEDAVG),
        a.wait_minibatch(local=LOCAL),
        a.fedprox(mu=0.0, local=LOCAL),
        a.fedavgm(server_momentum=0.0, inner=FEDAVG),
        a.fedstale(local=LOCAL),
        a.fedstale(weights="delivered", local=LOCAL),
        a.fedkeep(local=LOCAL),
        a.fedkeep(beta=1.0, local=LOCAL),
        a.fedawe(local=LOCAL),
        a.fedavg(local=replace(LOCAL, rule=proximal(0.0))),
        a.fedavg(local=replace(LOCAL, rule=sgd(momentum=0.0, weight_decay=0.0, clip=1e9))),
    ],
    ids=repr,
)
def test_under_full_participation_this_is_fedavg(method) -> None:
    same(method, FEDAVG, ALWAYS, rounds=4)


def test_clustered_fedvarp_is_fedavg_under_full_participation() -> None:
    """Σ_i h_{c(i)}/N is the mean that is added, so that memory cancels in every round."""
    same(a.fedvarp(clusters=[0, 1, 2, 0, 1, 2], local=LOCAL), FEDAVG, ALWAYS, rounds=4)


def test_scaffold_starts_as_fedavg_under_full_participation() -> None:
    """All control variates are zero in the first round, and no longer in the second."""
    same(a.scaffold(local=LOCAL), FEDAVG, ALWAYS, rounds=1)
    found = run(a.scaffold(local=LOCAL), ALWAYS, 2)
    assert not torch.allclose(found[1], run(FEDAVG, ALWAYS, 2)[1], rtol=1e-3)


@pytest.mark.parametrize("method", [FEDAVG, a.fedau(cutoff=3, local=LOCAL)], ids=repr)
def test_no_amplification_changes_nothing(method) -> None:
    same(a.amplified(period=3, factor=1.0, inner=method), method)


@pytest.mark.parametrize("factor", [0.5, 1.0, 3.0])
def test_amplification_every_round_is_a_server_step_size(factor) -> None:
    same(a.amplified(1, factor, FEDAVG), a.fedavg(server_lr=factor, local=LOCAL))


@pytest.mark.parametrize("method", [FEDAVG, a.mifa(local=LOCAL)], ids=repr)
def test_without_server_rounds_safari_is_the_inner_method(method) -> None:
    same(a.safari(q=1.0, inner=method), method)


def test_without_client_rounds_safari_is_the_server_alone() -> None:
    same(a.safari(0.0, 2, 3, 0.2, inner=FEDAVG), a.server_only(2, 3, 0.2))


@pytest.mark.parametrize(
    ("method", "plain"),
    [
        (a.fedvarp(local=LOCAL), FEDAVG),
        (a.fedvarp(clusters=GROUPS, local=LOCAL), FEDAVG),
        (a.mifa(local=LOCAL), a.average_all(local=LOCAL)),
        (a.mifa(memory="client", local=LOCAL), a.average_all(local=LOCAL)),
    ],
    ids=repr,
)
def test_with_beta_zero_memory_has_no_say(method, plain) -> None:
    same(replace(method, beta=0.0), plain)


@pytest.mark.parametrize(
    ("method", "other"),
    [
        (a.fedprox(mu=0.0, local=LOCAL), FEDAVG),
        (a.fedprox(mu=0.5, local=LOCAL), a.fedavg(local=replace(LOCAL, rule=proximal(0.5)))),
        (a.fedavgm(1.5, 0.0, FEDAVG), a.fedavg(server_lr=1.5, local=LOCAL)),
        (a.fedstale(1.0, "delivered", local=LOCAL), a.fedvarp(local=LOCAL)),
        (a.fedstale(0.0, cutoff=3, local=LOCAL), a.fedau(cutoff=3, local=LOCAL)),
        (a.fedkeep(0.0, cutoff=3, local=LOCAL), a.fedau(cutoff=3, local=LOCAL)),
        (a.fedkeep(0.4, cutoff=3, local=LOCAL), a.fedstale(0.4, cutoff=3, local=LOCAL)),
        (a.fedkeep(1.0, cutoff=1, local=LOCAL), a.mifa(local=LOCAL)),
        (a.amplified_scaffold(1, 1.0, local=LOCAL), a.scaffold(local=LOCAL)),
    ],
    ids=repr,
)
def test_a_method_at_its_corner_is_another(method, other) -> None:
    same(method, other)


def test_a_cluster_for_each_client_is_fedvarp() -> None:
    same(a.fedvarp(clusters=[3, 1, 0, 2, 5, 4], local=LOCAL), a.fedvarp(local=LOCAL))


@pytest.mark.parametrize("init", ["zero", "seen", "wait"])
def test_mifa_is_the_same_wherever_memory_is_held(init) -> None:
    everybody = DELIVERED.copy()
    everybody[5, 3] = True  # client 3 comes once, so that "wait" ends
    for trace in (DELIVERED, everybody):
        same(a.mifa(init, "client", local=LOCAL), a.mifa(init, local=LOCAL), trace)


@pytest.mark.parametrize("beta", [0.3, 1.0])
def test_half_a_memory_is_the_same_wherever_it_is_held(beta) -> None:
    """Client-held memory goes with any weights: here those of FedAU."""
    fedau = a.fedau(cutoff=3, local=LOCAL)
    methods = [
        replace(fedau, memory=a.mifa(memory=where).memory, beta=beta)
        for where in ("server", "client")
    ]
    same(*methods)


def test_mifa_waits_until_all_have_come_and_then_is_zero_init_with_a_full_table() -> None:
    everybody = DELIVERED.copy()
    everybody[5, 3] = True  # the last to come for the first time
    world, model = classification(everybody), logistic()
    wait, zero = (
        Simulation.of(a.mifa(init, local=LOCAL), world, model, dtype=torch.float64)
        for init in ("wait", "zero")
    )
    progress = begin(wait)
    first = progress.server.x
    for _ in range(5):
        advance(wait, progress)
        assert torch.equal(progress.server.x, first)
    advance(wait, progress)
    table = progress.server.memory["table"]
    torch.testing.assert_close(progress.server.x - first, table.mean(0), rtol=1e-12, atol=1e-14)
    other = deepcopy(progress)
    for _ in range(6, ROUNDS):
        advance(wait, progress)
        advance(zero, other)
        assert torch.equal(progress.server.x, other.server.x)


def test_groups_of_one_are_clients() -> None:
    one_each = [4, 2, 0, 1, 3, 5]
    for more in ({}, {"decay": 0.4}):
        grouped = a.fedau(cutoff=3, groups=one_each, local=LOCAL, **more)
        same(grouped, a.fedau(cutoff=3, local=LOCAL, **more))


def test_waiting_for_all_on_one_cycle_is_one_average() -> None:
    """Everybody once, in three parts: the model moves in the third, as if all had come at once."""
    parts = np.zeros((3, CLIENTS), dtype=bool)
    parts[[0, 0, 1, 1, 2, 2], [5, 1, 0, 3, 2, 4]] = True
    model, wait = logistic(), a.wait_full(local=LOCAL)
    waiting = in_process(wait, classification(parts), model, 3)
    assert torch.equal(waiting[0], waiting[1])
    at_once = in_process(wait, classification(ALWAYS), model, 1)
    torch.testing.assert_close(waiting[2], at_once[0], rtol=1e-12, atol=1e-13)
    whole = replace(LOCAL, steps=1, epochs=None, batch_size=None)
    plain = in_process(a.fedavg(local=whole), classification(ALWAYS), model, 1)
    torch.testing.assert_close(waiting[2], plain[0], rtol=1e-12, atol=1e-13)
