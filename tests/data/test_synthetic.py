"""Synthetic problems: every constant that they claim, measured on their samples."""

import numpy as np
import pytest
import torch

from turnout.data.synthetic import Problem, least_squares, quadratics
from turnout.errors import InputError
from turnout.flat import Layout
from turnout.models import Model

PROBLEMS = [
    quadratics([[0.0, 1.0], [2.0, -1.0], [5.0, 3.0]]),
    least_squares(6, 4, 7, smoothness=3.0, convexity=0.5, noise=1.5, divergence=2.5, seed=1),
    least_squares(2, 1, 2, smoothness=1.0, convexity=1.0),
    least_squares(1, 3, 5, divergence=0.0),
    least_squares(4, 3, 1, noise=0.0),
]


def sample_gradients(problem: Problem, x: np.ndarray) -> list[np.ndarray]:
    """Per client, the gradient of each of its samples at x, by autograd through the model."""
    dim = len(x)
    module = Model.of(problem.model, (dim,)).module.double()
    model = Model(module, Model.of(problem.model, (dim,)).loss, False)
    Layout.of(module).load(torch.from_numpy(x), module)
    found = []
    for client in range(problem.partition.clients):
        rows = torch.from_numpy(problem.partition.rows(client))
        inputs, targets = problem.pool.gather(rows, torch.float64)
        each = []
        for i in range(len(rows)):
            loss = model.loss(module(inputs[i : i + 1]), targets[i : i + 1]).sum()
            each.append(torch.autograd.grad(loss, module.x)[0].numpy())
        found.append(np.stack(each))
    return found


@pytest.mark.parametrize("problem", PROBLEMS)
@pytest.mark.parametrize("scale", [0.0, 1.0, 50.0])
def test_constants_hold_on_the_samples_at_every_point(problem, scale) -> None:
    dim = problem.centres.shape[1]
    x = scale * np.random.default_rng(0).normal(size=dim)
    samples = sample_gradients(problem, x)
    means = np.stack([g.mean(0) for g in samples])
    np.testing.assert_allclose(means, problem.gradients(x), atol=1e-9)
    variances = [np.square(g - g.mean(0)).sum(1).mean() for g in samples]
    np.testing.assert_allclose(variances, problem.noise**2, atol=1e-9)
    apart = np.linalg.norm(means - means.mean(0), axis=1).max()
    assert apart == pytest.approx(problem.divergence, abs=1e-9)


@pytest.mark.parametrize("problem", PROBLEMS)
def test_the_optimum_of_any_weighted_objective(problem) -> None:
    clients = problem.partition.clients
    for shares in (None, np.arange(1.0, clients + 1)):
        best = problem.optimum(shares)
        q = np.full(clients, 1 / clients) if shares is None else shares / shares.sum()
        np.testing.assert_allclose(q @ problem.gradients(best), 0, atol=1e-9)
        moves = np.random.default_rng(1).normal(size=(20, len(best)))
        floor = problem.value(best, shares)
        assert all(problem.value(best + 0.1 * move, shares) > floor for move in moves)


@pytest.mark.parametrize("problem", PROBLEMS)
def test_value_is_the_mean_loss_of_the_samples(problem) -> None:
    dim = problem.centres.shape[1]
    x = np.random.default_rng(2).normal(size=dim)
    model = Model.of(problem.model, (dim,))
    module = model.module.double()
    Layout.of(module).load(torch.from_numpy(x), module)
    losses = []
    for client in range(problem.partition.clients):
        inputs, targets = problem.pool.gather(
            torch.from_numpy(problem.partition.rows(client)), torch.float64
        )
        losses.append(model.loss(module(inputs), targets).mean().item())
    assert problem.value(x) == pytest.approx(np.mean(losses))


def test_curvature_is_as_asked() -> None:
    problem = least_squares(3, 5, 4, smoothness=7.0, convexity=0.2)
    assert problem.smoothness == pytest.approx(7.0)
    assert problem.convexity == pytest.approx(0.2)
    both = quadratics([[1.0, 2.0]])
    assert (both.smoothness, both.convexity, both.noise) == (1.0, 1.0, 0.0)


def test_noise_and_divergence_are_as_asked() -> None:
    problem = least_squares(6, 4, 7, noise=1.5, divergence=2.5)
    assert problem.divergence == pytest.approx(2.5)
    assert problem.noise == 1.5
    # For the points z = 0, 2, 4 in the plane's first direction, the farthest is 2 from the mean.
    assert quadratics([[0.0, 1.0], [2.0, 1.0], [4.0, 1.0]]).divergence == pytest.approx(2.0)


def test_the_seed_decides() -> None:
    a, b, c = (least_squares(3, 2, 4, seed=seed) for seed in (0, 0, 1))
    assert torch.equal(a.pool.targets, b.pool.targets)
    assert not torch.equal(a.pool.targets, c.pool.targets)


def test_the_common_design_is_kept_once() -> None:
    pool = least_squares(100, 10, 50).pool
    assert pool.inputs.untyped_storage().nbytes() == 10 * 10 * 8


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: quadratics([1.0, 2.0]), "shape of z"),
        (lambda: quadratics([[float("nan")]]), "NaN"),
        (lambda: least_squares(0, 2, 2), "clients is 0"),
        (lambda: least_squares(2, 2, 2, convexity=2.0), "convexity is 2.0"),
        (lambda: least_squares(2, 1, 2), "convexity is 0.1"),
        (lambda: least_squares(2, 2, 1), "samples is 1"),
        (lambda: least_squares(1, 2, 2), "clients is 1"),
        (lambda: least_squares(2, 2, 2, noise=-1.0), "noise is -1.0"),
        (lambda: quadratics([[1.0], [2.0]]).optimum([1.0]), "shares is"),
        (lambda: quadratics([[1.0], [2.0]]).optimum([0.0, 0.0]), "shares is"),
    ],
)
def test_refusals(make, message) -> None:
    with pytest.raises(InputError, match=message):
        make()
