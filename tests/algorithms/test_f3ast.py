"""F3AST: its lines round by round, whom it asks, and that it knows nothing but what it has seen."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from tests.algorithms.naive import moved, trace
from tests.conformance.worlds import HALF, path, point, quadratic, walk

from turnout import Model, World, simulate
from turnout.algorithms import f3ast, fedavg, safari
from turnout.data import quadratics
from turnout.errors import InputError
from turnout.experiments.cells import participation_log
from turnout.participation import always, bernoulli, lossy
from turnout.parts.local import Local
from turnout.parts.rate import RunningRate
from turnout.round import select, start
from turnout.simulator import Simulation, advance, begin


def test_by_hand() -> None:
    # One of two a round; both always there, shares ¾ and ¼; r begins at ½ and forgets half.
    # p/r = 1.5, 0.5: client 0; 8 → 8 + 1.5·(−4) = 2, and r → ¾, ¼
    # p/r = 1, 1, by lot: client 0, 2 → 1, r → ⅞, ⅛; or client 1, 2 → 3, r → ⅜, ⅝
    # p/r = 6/7, 2: client 1, 1 → 1 + 2·1.5 = 4;  or 2, 2/5: client 0, 3 → 3 − 2·1.5 = 0
    method = f3ast(1, decay=0.5, local=HALF)
    found = walk(method, [0, 4], [[1, 1]] * 3, 8, shares=[0.75, 0.25])
    assert found[0] == 2
    assert found[1:] in ([1.0, 4.0], [3.0, 0.0])


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(("K", "lost"), [(1, False), (2, False), (2, True), (5, False)])
def test_the_papers_lines_on_random_traces(seed, K, lost) -> None:
    z, there = trace(seed)
    N, lr, steps, beta, eta, floor = len(z), 0.1, 3, 0.2, 0.7, 0.05
    draw = np.random.default_rng(seed)
    p = draw.dirichlet(np.full(N, 3.0))  # no two alike, so that lots are never drawn
    arrives = there & (draw.random(there.shape) < 0.7) if lost else there
    x, asked_rate, came_rate = 3.0, np.full(N, min(1, K / N)), np.full(N, min(1, K / N))
    expected, asked_of = [], []
    for here, delivers in zip(there, arrives, strict=True):
        by_need = sorted(np.flatnonzero(here), key=lambda n: -p[n] / asked_rate[n])
        S = sorted(by_need[:K])
        came = [n for n in S if delivers[n]]
        x += eta * sum(p[n] / max(came_rate[n], floor) * moved(x, z[n], lr, steps) for n in came)
        asked_rate = (1 - beta) * asked_rate + beta * np.isin(np.arange(N), S)
        came_rate = (1 - beta) * came_rate + beta * np.isin(np.arange(N), came)
        expected.append(x)
        asked_of.append([int(n) for n in S])
    method = f3ast(K, beta, floor, eta, Local(lr, steps, None, None))
    world = quadratic(z, arrives, asked=there, shares=p)
    simulation = Simulation.of(method, world, Model.of("point", (1,)))
    progress = begin(simulation)
    assert [advance(simulation, progress).cohort.tolist() for _ in there] == asked_of
    found = path(method, world, len(there), 3.0)[:, 0]
    np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_where_all_are_there_and_all_are_asked_it_is_fedavg() -> None:
    z, mask = trace(0)
    everybody = np.ones_like(mask)
    found = walk(f3ast(len(z), local=HALF), z, everybody, 3.0)
    np.testing.assert_allclose(found, walk(fedavg(local=HALF), z, everybody, 3.0), rtol=1e-12)


def test_no_more_than_so_many_are_asked_and_all_take_their_turn() -> None:
    problem = quadratics(np.arange(6.0)[:, None])
    world = World.build(problem.pool, problem.partition, problem.pool, always(6))
    run = simulate(f3ast(2, local=HALF), world, Model.of("point", (1,)), 60)
    assert [client["delivered"] for client in run.clients] == [20] * 6
    assert {client["rate"] for client in run.clients} == {None}


def test_a_client_whose_updates_never_arrive_does_not_keep_its_place() -> None:
    problem = quadratics(np.arange(4.0)[:, None])
    process = lossy(always(4), [1.0, 0.0, 0.0, 0.0], seed=0)
    world = World.build(problem.pool, problem.partition, problem.pool, process)
    run = simulate(f3ast(1, local=HALF), world, Model.of("point", (1,)), 80)
    assert [client["delivered"] for client in run.clients] == [0, 20, 20, 20]


def test_it_ends_near_the_optimum_where_rates_differ() -> None:
    problem = quadratics(np.repeat([[0.0], [1.0], [2.0]], 10, axis=0))  # the optimum is 1
    process = bernoulli(np.repeat([0.9, 0.5, 0.2], 10), seed=0)
    world = World.build(problem.pool, problem.partition, problem.pool, process)
    ends = []
    for method in (fedavg(local=Local(0.05, 1)), f3ast(5, local=Local(0.05, 1))):
        simulation = Simulation.of(method, world, Model.of("point", (1,)))
        progress, path = begin(simulation), []
        for _ in range(600):
            advance(simulation, progress)
            path.append(progress.server.x.item())
        ends.append(abs(np.mean(path[300:]) - 1))
    assert ends[0] > 0.3
    assert ends[1] < 0.1


def test_true_rates_have_no_part_in_it() -> None:
    """Two processes with the same mask, of which one tells rates and the other lies about them."""
    problem = quadratics(np.arange(5.0)[:, None])
    honest = bernoulli([0.9, 0.7, 0.5, 0.3, 0.1], seed=3)
    ends = []
    for process in (
        honest,
        replace(honest, rates=honest.rates[::-1].copy()),
        replace(honest, rates=None),
    ):
        world = World.build(problem.pool, problem.partition, problem.pool, process)
        ends.append(simulate(f3ast(2, local=HALF), world, Model.of("point", (1,)), 40).x.item())
    assert len(set(ends)) == 1


def test_lots_are_the_seeds() -> None:
    method = f3ast(2)
    drawn = [
        tuple(select(method, start(method, torch.zeros(1), 9), np.arange(9), seed)[0])
        for seed in [*range(9), *range(9)]
    ]
    assert drawn[:9] == drawn[9:]
    assert len(set(drawn)) > 5


@pytest.mark.parametrize("shares", [None, [0.1, 0.2, 0.3, 0.3, 0.1]])
def test_a_log_tells_who_was_asked_and_not_who_was_there(shares) -> None:
    z, there = trace(2)
    there[:, 0] = True
    arrives = there & (np.arange(len(there)) % 3 > 0)[:, None]
    world = quadratic(z, arrives, asked=there, shares=shares)
    inner = f3ast(2, local=HALF)
    for method in (inner, safari(q=0.6, inner=inner)):
        simulation = Simulation.of(method, replace(world, server=world.test), point(), seed=4)
        progress = begin(simulation)
        happened = [advance(simulation, progress) for _ in there]
        log = participation_log(simulation, len(there))
        asked, came = log.mask(cohort=True), log.mask()
        for t, each in enumerate(happened):
            assert np.flatnonzero(asked[t]).tolist() == each.cohort.tolist()
            assert np.flatnonzero(came[t]).tolist() == each.delivered.tolist()


def test_lazy_rates_are_those_of_every_round() -> None:
    mask = np.random.default_rng(0).random((50, 6)) < 0.3
    rate = RunningRate(0.1, 2)
    state, naive = rate.init(6), np.full(6, 2 / 6)
    for t, came in enumerate(mask):
        np.testing.assert_allclose(rate.at(state, t, np.arange(6)), naive, rtol=1e-12)
        state = rate.observe(state, t, np.flatnonzero(came))
        naive = 0.9 * naive + 0.1 * came


@pytest.mark.parametrize(
    "wrong", [{"per_round": 0}, {"per_round": 1.5}, {"decay": 0.0}, {"decay": 2.0}, {"floor": -0.1}]
)
def test_bad_settings(wrong) -> None:
    with pytest.raises(InputError, match=next(iter(wrong))):
        f3ast(**wrong)
