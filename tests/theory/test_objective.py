"""What averaging minimises: closed forms, and where turnout's own runs end."""

from functools import partial

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.theory.play import Floats, play, simulated

import turnout
from turnout import Local, Model, World
from turnout.algorithm import Algorithm
from turnout.algorithms import average_all, fedau, fedavg, known
from turnout.data import Partition, Pool, least_squares, quadratics
from turnout.errors import InputError
from turnout.participation import bernoulli
from turnout.participation import given as given_mask
from turnout.theory.objective import (
    average_participating,
    fedau_cut,
    limit_point,
    objective,
    quadratic_optimum,
    realised,
    theorem_1,
)

RATES = np.array([0.5, 0.2, 0.1, 0.1])
CENTRES = np.array([[0.0, 1.0], [2.0, 0.0], [4.0, -1.0], [6.0, 4.0]])
HESSIAN = np.array([[1.0, 0.2], [0.2, 0.5]])


@given(p=st.lists(st.floats(0.0, 1.0), min_size=1, max_size=9))
def test_dividing_by_those_who_came_against_all_subsets(p: list[float]) -> None:
    rates = np.array(p)
    if not rates.max() > 1e-3:
        return
    expected = np.zeros(len(p))
    for code in range(1, 2 ** len(p)):
        here = np.array([code >> n & 1 for n in range(len(p))], dtype=bool)
        expected += here / here.sum() * np.prod(np.where(here, rates, 1 - rates))
    found = average_participating(rates).shares
    np.testing.assert_allclose(found, expected / expected.sum(), atol=1e-10)


def test_dividing_by_those_who_came_with_many_clients() -> None:
    rates = np.geomspace(0.001, 0.9, 3000)
    mask = bernoulli(rates, seed=3).mask(3000)
    found = realised(fedavg(), mask)
    exact = average_participating(rates)
    assert exact.shares.sum() == pytest.approx(1)
    few, many = slice(0, 1500), slice(1500, 3000)  # sums, since each share is too noisy
    for part in (few, many):
        assert found.shares[part].sum() == pytest.approx(exact.shares[part].sum(), rel=0.02)


def test_known_rates_recover_f() -> None:
    assert theorem_1(RATES, 1 / RATES).total_variation < 1e-15
    assert theorem_1(RATES).total_variation == pytest.approx(0.5 / 0.9 - 0.25)


def test_missing_clients_show_up_as_missing() -> None:
    found = theorem_1([0.5, 0.0, 0.25], intended=[1, 2, 1])
    assert found.missing == 0.5
    assert found.ratio.tolist() == pytest.approx([8 / 3, 0, 4 / 3])
    assert "50 %" in str(found)


def test_the_objective_and_the_error_of_its_gradient() -> None:
    found = theorem_1([0.75, 0.25])
    assert found.value([4.0, 8.0]) == 5.0
    assert found.error([[1.0, 0.0], [-1.0, 0.0]]) == pytest.approx(0.5)


def test_the_optimum_of_unlike_quadratics_has_no_gradient() -> None:
    generator = np.random.default_rng(0)
    roots = generator.normal(size=(4, 3, 3))
    hessians, centres = roots @ roots.transpose(0, 2, 1), generator.normal(size=(4, 3))
    x = quadratic_optimum(hessians, centres, RATES)
    gradients = np.einsum("nij,nj->ni", hessians, x - centres)
    np.testing.assert_allclose(RATES @ gradients, 0, atol=1e-12)
    near = limit_point(hessians, centres, RATES, lr=1e-7, steps=5)
    np.testing.assert_allclose(near, x, atol=1e-5)
    assert np.abs(limit_point(hessians, centres, RATES, lr=0.1, steps=5) - x).max() > 0.01


def _spread(rounds: int) -> np.ndarray:
    """Clients at RATES of the time, evenly spaced, so that the end has little noise."""
    every = (1 / RATES).astype(int)
    return np.arange(rounds)[:, None] % every == np.arange(len(RATES)) % every


def _end(algorithm: Algorithm, mask: np.ndarray) -> Floats:
    path = play(algorithm, HESSIAN, CENTRES, mask)
    tail: Floats = path[len(path) // 2 :].mean(axis=0)
    return tail


def test_averages_end_at_argmin_h_and_fedau_at_argmin_f() -> None:
    mask, local = _spread(4000), Local(lr=0.004, steps=3)
    h = quadratic_optimum(HESSIAN, CENTRES, theorem_1(RATES).shares)
    f = quadratic_optimum(HESSIAN, CENTRES, np.ones(4))
    assert np.linalg.norm(h - f) > 1
    ends = {
        "all": _end(average_all(local=local), mask),
        "fedau": _end(fedau(cutoff=50, local=local), mask),
        "known": _end(known(RATES, local=local), mask),
    }
    assert np.linalg.norm(ends["all"] - h) < 0.02
    assert np.linalg.norm(ends["fedau"] - f) < 0.04  # steps are five times as long as h's
    assert np.linalg.norm(ends["known"] - f) < 0.04


COINS = {
    "all": (average_all, theorem_1(RATES)),
    "participating": (fedavg, average_participating(RATES)),
    "fedau": (partial(fedau, cutoff=None), objective(np.ones(4))),
    "fedau, cut at 5": (partial(fedau, cutoff=5), fedau_cut(RATES, 5)),
}


@pytest.mark.parametrize(
    ("name", "rounds"),
    [("participating", 3000), *(pytest.param(n, 20_000, marks=pytest.mark.slow) for n in COINS)],
)
def test_with_coins_each_average_ends_at_the_optimum_of_its_own_objective(
    name: str, rounds: int
) -> None:
    mask, local = bernoulli(RATES, seed=5).mask(rounds), Local(lr=0.01, steps=2)
    end = _end(COINS[name][0](local=local), mask)
    optima = {of: quadratic_optimum(HESSIAN, CENTRES, h.shares) for of, (_, h) in COINS.items()}
    apart = {of: float(np.linalg.norm(end - x)) for of, x in optima.items()}
    assert min(apart, key=lambda of: apart[of]) == name
    assert apart[name] < 12 / rounds**0.5  # the coins' own noise; the optima lie 0.4 to 2 apart


def test_unlike_curvatures_end_where_client_drift_says() -> None:
    hessians = np.array([[[1.0]], [[0.1]]])
    centres = np.array([[0.0], [10.0]])

    # F_n(x) = ½ h_n (x − c_n)², as least squares with one sample each
    design = torch.from_numpy(np.sqrt(hessians))
    pool = Pool(design, torch.from_numpy(np.sqrt(hessians)[:, :, 0] * centres))
    everybody = given_mask(np.ones((1, 2)), repeat=True)
    world = World.build(pool, Partition.of(np.arange(2), 2), pool, everybody)
    local = Local(lr=0.5, steps=5, batch_size=None)
    model = Model.of("linear", (1,))
    run = turnout.simulate(
        fedavg(local=local), world, model, 60, engine="reference", dtype=torch.float64
    )
    expected = limit_point(hessians, centres, [1, 1], lr=0.5, steps=5)
    assert run.x.item() == pytest.approx(expected.item(), abs=1e-9)
    drift_free = quadratic_optimum(hessians, centres, [1, 1]).item()
    assert abs(run.x.item() - drift_free) > 0.5


@pytest.mark.parametrize("method", ["average_all", "fedavg", "fedau"])
def test_the_simulator_walks_the_same_path(method: str) -> None:
    algorithm = turnout.algorithms.RECIPES[method](local=Local(lr=0.1, steps=3, batch_size=None))
    process = bernoulli(RATES, seed=1)
    walked = simulated(algorithm, quadratics(CENTRES), process, 60)
    np.testing.assert_allclose(
        walked, play(algorithm, np.eye(2), CENTRES, process.mask(60)), atol=1e-12
    )


@pytest.mark.parametrize("method", ["average_all", "fedau"])
def test_noisy_least_squares_in_the_simulator_end_there_too(method: str) -> None:
    problem = least_squares(4, 2, 8, noise=0.5, divergence=2.0, convexity=0.5)
    shares = {"average_all": theorem_1(RATES).shares, "fedau": np.ones(4)}
    optima = {of: problem.optimum(share) for of, share in shares.items()}
    algorithm = turnout.algorithms.RECIPES[method](local=Local(lr=0.02, steps=2, batch_size=4))
    path = simulated(algorithm, problem, given_mask(_spread(20), repeat=True), 800)
    apart = np.linalg.norm(path[600:].mean(axis=0) - optima[method])
    assert apart < 0.05 * np.linalg.norm(optima["average_all"] - optima["fedau"])


@pytest.mark.parametrize(
    "call",
    [
        lambda: theorem_1([0.0, 0.0]),
        lambda: theorem_1([0.5, 1.2]),
        lambda: theorem_1([0.5], weights=[1.0, 2.0]),
        lambda: theorem_1([0.5, 0.5], intended=[1.0]),
        lambda: theorem_1([0.5, 0.5]).value([1.0]),
        lambda: average_participating([0.0]),
        lambda: quadratic_optimum(np.eye(3), [[0.0, 1.0]], [1.0]),
        lambda: quadratic_optimum(np.eye(2), [[0.0, 1.0]], [1.0, 2.0]),
        lambda: objective([]),
        lambda: objective([1.0, float("nan")]),
    ],
)
def test_bad_input_is_refused(call) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(InputError, match="must be"):
        call()
