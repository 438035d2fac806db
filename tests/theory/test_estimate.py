"""Measured constants: exact on quadratics, sane on a network."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from turnout import Model, World, draws
from turnout.data import dirichlet, least_squares
from turnout.data.digits import digits
from turnout.errors import InputError
from turnout.models import initialise
from turnout.participation import bernoulli
from turnout.theory.amplified import divergence_split
from turnout.theory.estimate import client_gradients, estimate, extreme_eigenvalues
from turnout.theory.fedau import b_4_4


def _world(problem, p, server=None, shares=None):  # type: ignore[no-untyped-def]
    return World.build(problem.pool, problem.partition, problem.pool, bernoulli(p), server, shares)


@pytest.mark.parametrize("batch", [1, 2, 3, None])
def test_on_least_squares_the_constants_are_the_true_ones(batch: int | None) -> None:
    problem = least_squares(6, 4, 9, smoothness=3.0, convexity=0.2, noise=1.5, divergence=2.0)
    p = np.array([0.5, 0.5, 0.5, 0.5, 0.0, 0.0])
    world = _world(problem, p, server=problem.pool)
    points = [torch.full((4,), v, dtype=torch.float64) for v in (1.0, -5.0)]
    floor = problem.value(problem.optimum())
    found = estimate(Model.of("linear", (4,)), world, points, batch, server_batch=1, floor=floor)
    assert found.smoothness == pytest.approx(3.0)
    assert found.convexity == pytest.approx(0.2)
    assert found.divergence == pytest.approx(2.0)
    assert found.gap == pytest.approx(problem.value(points[0]) - floor)
    size = 9 if batch is None else batch  # drawn without replacement
    assert found.noise == pytest.approx(1.5 * ((9 - size) / (size * 8)) ** 0.5)
    gradients = [problem.gradients(x) for x in points]
    assert found.gradient == pytest.approx(max(np.linalg.norm(g.mean(0)) for g in gradients))
    bias = gradients[0][:4].mean(0) - gradients[0].mean(0)
    assert found.bias == pytest.approx(np.linalg.norm(bias))
    every = problem.gradients(points[1])
    np.testing.assert_allclose(
        client_gradients(Model.of("linear", (4,)), world, points[1]), every, atol=1e-9
    )
    # The server draws from everybody's data: noise within clients, and their divergence.
    spread = np.square(every - every.mean(0)).sum(axis=1).mean()
    assert found.server_noise == pytest.approx((1.5**2 + spread) ** 0.5)


def test_mini_batches_have_the_noise_that_is_estimated() -> None:
    problem = least_squares(1, 3, 10, noise=1.0, divergence=0.0)
    world = _world(problem, [1.0])
    noise = estimate(Model.of("linear", (3,)), world, batch_size=4).noise
    samples = np.einsum("nij,ni->nj", problem.pool.inputs.numpy(), -problem.pool.targets.numpy())
    generator = draws.generator(0, "batches of tests")
    batches = [samples[generator.permutation(10)[:4]].mean(0) for _ in range(4000)]
    measured = np.square(np.array(batches) - samples.mean(0)).sum(axis=1).mean()
    assert measured == pytest.approx(noise**2, rel=0.05)


def test_weights_of_the_objective_fold_into_the_losses() -> None:
    problem = least_squares(3, 2, 4, noise=1.0, divergence=1.0)
    shares = np.array([0.5, 0.3, 0.2])
    model, even = Model.of("linear", (2,)), _world(problem, 0.5 * np.ones(3))
    uneven = replace(even, shares=shares)
    x = torch.tensor([1.0, 2.0], dtype=torch.float64)
    expected = problem.gradients(x) * (3 * shares[:, None])
    np.testing.assert_allclose(client_gradients(model, uneven, x), expected, atol=1e-9)
    found = estimate(model, uneven, [x], batch_size=1)
    assert found.gap == pytest.approx(problem.value(x, shares))
    assert found.noise == pytest.approx(1.5)  # 3·0.5 times that of client 0
    assert found.smoothness == pytest.approx(1.5)
    assert found.gradient == pytest.approx(np.linalg.norm(expected.mean(0)))


@given(seed=st.integers(0, 1000), dim=st.integers(1, 8))
def test_extreme_eigenvalues_are_exact_after_dim_steps(seed: int, dim: int) -> None:
    root = np.random.default_rng(seed).normal(size=(dim, dim))
    matrix = root + root.T
    low, high = extreme_eigenvalues(lambda v: matrix @ v, dim, steps=dim, seed=seed)
    values = np.linalg.eigvalsh(matrix)
    assert (low, high) == (pytest.approx(values[0]), pytest.approx(values[-1]))


def test_extreme_eigenvalues_of_multiples_of_one() -> None:
    assert extreme_eigenvalues(lambda v: 2 * v, dim=50) == pytest.approx((2.0, 2.0))
    assert extreme_eigenvalues(lambda v: 0 * v, dim=5) == (0.0, 0.0)


def test_on_a_network_gradients_are_those_of_autograd_and_bounds_can_be_taken() -> None:
    train, test = digits()
    partition = dirichlet(train.targets, 8, 0.3, seed=0)
    world = World.build(train, partition, test, bernoulli(np.full(8, 0.4)))
    model = Model.of("perceptron", tuple(train.inputs.shape[1:]), 10)
    initialise(model.module, 0)
    gradients = client_gradients(model, world)
    rows = partition.rows(3)
    inputs = train.normalise(train.inputs[rows], torch.float32)
    loss = model.loss(model.module(inputs), train.targets[rows]).mean()
    expected = torch.cat(
        [g.flatten() for g in torch.autograd.grad(loss, list(model.module.parameters()))]
    )
    np.testing.assert_allclose(gradients[3], expected.numpy(), atol=1e-5)
    found = estimate(model, world, batch_size=16, curvature_clients=1, lanczos_steps=8)
    assert found.divergence == pytest.approx(
        np.linalg.norm(gradients - gradients.mean(0), axis=1).max()
    )
    assert found.convexity == 0  # 8 steps do not see the least eigenvalue of so many
    assert 1 < found.smoothness < 100
    split = divergence_split(world.participation.mask(100), gradients, 10)
    assert 0 < split.window < found.divergence
    assert b_4_4(found, 5, 1e-3, 1.0, 1000, world.participation.rates).value > 0


@pytest.mark.parametrize(
    "wrong",
    [
        {"points": []},
        {"points": [torch.zeros(3)]},
        {"lanczos_steps": 0},
        {"curvature_clients": -1},
    ],
)
def test_bad_input_is_refused(wrong) -> None:  # type: ignore[no-untyped-def]
    problem = least_squares(2, 2, 3)
    with pytest.raises(InputError, match="must be"):
        estimate(Model.of("linear", (2,)), _world(problem, [0.5, 0.5]), **wrong)
