"""CA-Fed: its chains, its exclusions and its weights, each found anew from the whole history."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import torch
from tests.algorithms.naive import moved
from tests.conformance.worlds import HALF, path, point, quadratic, walk

from turnout import Model, World, simulate
from turnout.algorithms import average_all, ca_fed, known
from turnout.algorithms.ca_fed import chains
from turnout.costs import costs
from turnout.data import quadratics
from turnout.errors import InputError
from turnout.participation import bernoulli, markov
from turnout.parts.local import Local
from turnout.round import start
from turnout.simulator import Simulation, advance, begin


def counted(history: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(π, λ) from a [rounds, N] table, transition by transition, with half a one of each kind."""
    shares, carried = [], []
    for column in history.T.tolist():
        pairs = list(pairwise(column))
        coming = (pairs.count((False, True)) + 0.5) / (sum(not a for a, _ in pairs) + 1)
        leaving = (pairs.count((True, False)) + 0.5) / (sum(a for a, _ in pairs) + 1)
        shares.append(coming / (coming + leaving))
        carried.append(1 - coming - leaving)
    return np.array(shares), np.array(carried)


def error(q, pi, alpha, F, kappa) -> float:
    w = pi * q / np.sum(pi * q)
    tv = np.abs(alpha - w).sum() / 2
    return w @ F + kappa * F.max() * tv**2


def allocation(pi, carried, alpha, F, kappa, tolerance) -> np.ndarray:
    q = alpha / pi
    N = range(len(alpha))
    for order in (sorted(N, key=lambda k: -abs(carried[k])), sorted(N, key=lambda k: pi[k])):
        for k in order:
            without = q.copy()
            without[k] = 0
            if (
                without.any()
                and error(q, pi, alpha, F, kappa) - error(without, pi, alpha, F, kappa) > tolerance
            ):
                q = without
    return q


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(("kappa", "tolerance", "smooth"), [(1.0, 0.0, 0.0), (0.2, 0.01, 0.6)])
def test_the_papers_lines_on_random_chains(seed, kappa, tolerance, smooth) -> None:
    draw = np.random.default_rng(seed)
    N, lr, steps, eta = 6, 0.1, 2, 0.3
    z, alpha = draw.normal(size=N) * 2, draw.dirichlet(np.full(N, 5.0))
    stays = draw.uniform(0.3, 0.95, size=(N, 2))
    here, mask = np.zeros(N, dtype=bool), []
    for _ in range(40):
        here = np.where(draw.random(N) < np.where(here, stays[:, 1], stays[:, 0]), here, ~here)
        mask.append(here)
    mask = np.array(mask)
    mask[7] = False
    x, F, expected, left = 3.0, np.full(N, np.nan), [], 0
    for t, there in enumerate(mask):
        pi, carried = counted(mask[: t + 1])
        if np.isnan(F).all():
            q = alpha / pi
        else:
            losses = np.where(np.isnan(F), np.nanmean(F), F)
            q = allocation(pi, carried, alpha, losses, kappa, tolerance)
        S = [k for k in range(N) if there[k] and q[k] > 0]
        left += int(there.sum()) - len(S)
        reports = {k: (x - z[k]) ** 2 / 2 for k in S}
        x += eta * sum(q[k] * moved(x, z[k], lr, steps) for k in S)
        for k, loss in reports.items():
            F[k] = loss if np.isnan(F[k]) else smooth * F[k] + (1 - smooth) * loss
        expected.append(x)
    assert left > 3  # somebody was left out, though there
    method = ca_fed(kappa, tolerance, smooth, server_lr=eta, local=Local(lr, steps, None, None))
    found = path(method, quadratic(z, mask, shares=alpha), len(mask), 3.0)[:, 0]
    np.testing.assert_allclose(found, expected, rtol=1e-8)


def test_losses_are_those_of_the_model_that_was_sent_on_all_data_of_the_client() -> None:
    world = quadratic([[0, 4], [10]], [[1, 1]])
    simulation = Simulation.of(ca_fed(local=HALF), world, point(), dtype=torch.float64)
    progress = begin(simulation, torch.tensor([8.0]))
    advance(simulation, progress)
    assert progress.server.selection["loss"].tolist() == [(32 + 8) / 2, 2]


def test_with_much_weight_on_bias_nobody_is_left_out_and_weights_come_close_to_1_over_p() -> None:
    problem = quadratics(np.repeat([[0.0], [1.0], [2.0]], 10, axis=0))
    rates = np.repeat([0.9, 0.5, 0.2], 10)
    world = World.build(problem.pool, problem.partition, problem.pool, bernoulli(rates, seed=0))
    run = simulate(ca_fed(1e9, local=Local(0.02, 1)), world, Model.of("point", (1,)), 800)
    often = world.participation.mask(800).sum(0)
    assert [client["delivered"] for client in run.clients] == often.tolist()
    weights = np.array([client["effective_weight"] for client in run.clients])
    np.testing.assert_allclose(weights, 1, atol=0.12)
    oracle = simulate(known(rates, local=Local(0.02, 1)), world, Model.of("point", (1,)), 800)
    assert run.x.item() == pytest.approx(oracle.x.item(), abs=0.05)


def test_under_full_participation_it_comes_to_average_all() -> None:
    """The share of rounds in which somebody always there is there is estimated as ever closer to 1."""
    z, local = np.array([0.0, 1.0, 5.0]), Local(0.1, 2, None, None)
    mask = np.ones((400, 3), dtype=bool)
    found = walk(ca_fed(1e9, local=local), z, mask, 3.0)
    assert found[-1] == pytest.approx(walk(average_all(local=local), z, mask, 3.0)[-1], abs=1e-3)


def test_chains_are_found_from_who_was_there() -> None:
    problem = quadratics(np.zeros((40, 1)))
    process = markov(0.3, clients=40, seed=0)
    world = World.build(problem.pool, problem.partition, problem.pool, process)
    simulation = Simulation.of(ca_fed(1e9, local=HALF), world, Model.of("point", (1,)))
    progress = begin(simulation)
    for _ in range(1500):
        advance(simulation, progress)
    share, carried = chains(progress.server.selection)
    assert share.mean() == pytest.approx(0.3, abs=0.02)
    coming = 0.05  # of that process, by default
    assert carried.mean() == pytest.approx(1 - coming / 0.3, abs=0.01)


def test_true_rates_have_no_part_in_it() -> None:
    problem = quadratics(np.arange(5.0)[:, None])
    honest = bernoulli([0.9, 0.7, 0.5, 0.3, 0.1], seed=3)
    ends = []
    for process in (honest, replace(honest, rates=np.full(5, 0.5)), replace(honest, rates=None)):
        world = World.build(problem.pool, problem.partition, problem.pool, process)
        ends.append(simulate(ca_fed(local=HALF), world, Model.of("point", (1,)), 40).x.item())
    assert len(set(ends)) == 1


def test_losses_that_are_no_numbers_any_more_end_in_divergence_and_no_warning() -> None:
    world = quadratic([0, 4], [[1, 1]])
    run = simulate(ca_fed(local=Local(1e30, 9, None, None)), world, point(), 30)
    assert run.diverged is not None


def test_costs_and_what_it_shows() -> None:
    method = ca_fed()
    assert not method.sums_only
    asked = costs(method, start(method, torch.zeros(10), 4))
    assert (asked.server, asked.client, asked.down, asked.up) == (4 * 26, 0, 40, 40)


@pytest.mark.parametrize(
    "wrong",
    [
        {"bias": -1},
        {"bias": np.inf},
        {"tolerance": -0.1},
        {"smoothing": 1.0},
        {"least_loss": np.nan},
    ],
)
def test_bad_settings(wrong) -> None:
    with pytest.raises(InputError, match=next(iter(wrong))):
        ca_fed(**wrong)
