"""Metrics by hand: the objective, its spread, deciles of participation, clients never seen."""

from itertools import pairwise

import numpy as np
import pytest
import torch
from tests.conformance.worlds import attendance, point, quadratic
from torch import nn

from turnout import evaluate
from turnout.data.pool import Pool
from turnout.errors import InputError
from turnout.evaluate import ClientScores, Evaluator
from turnout.flat import Layout
from turnout.models import Model
from turnout.world import World


def on(world: World, model: Model, client_samples: int | None = None) -> Evaluator:
    module = model.module.double().train()
    model = Model(module, model.loss, model.classification)
    return Evaluator(world, model, Layout.of(module), torch.float64, client_samples)


def vector(*values: float) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64)


# ½(x − z)² at x = 2 of clients with 0; with 2 and 4; with 6, 6 and 0: losses 2; 0, 2; 8, 8, 2.
POINTS = [0, [2, 4], [6, 6, 0]]


def test_losses_of_clients_and_of_the_test_set() -> None:
    evaluator = on(quadratic(POINTS, [[1, 1, 1]]), point())
    scores = evaluator.clients(vector(2))
    np.testing.assert_allclose(scores.loss, [2, 1, 6])
    assert scores.accuracy is None
    # The test set is all six points: (2 + 0 + 2 + 8 + 8 + 2)/6
    assert evaluator.test(vector(2)) == {"test_loss": pytest.approx(22 / 6)}


def test_the_objective_is_the_mean_over_clients_not_over_samples() -> None:
    evaluator = on(quadratic(POINTS, [[1, 1, 1]]), point())
    metrics = evaluator.over_clients(evaluator.clients(vector(2)), np.array([1, 0, 2]))
    assert metrics["train_loss"] == pytest.approx(3)  # (2 + 1 + 6)/3, divided once
    assert metrics["spread_loss"] == pytest.approx(np.sqrt((1 + 4 + 9) / 3))
    assert metrics.keys() == {"train_loss", "spread_loss"}


def test_the_objective_has_the_worlds_shares() -> None:
    evaluator = on(quadratic(POINTS, [[1, 1, 1]], shares=[0.5, 0.3, 0.2]), point())
    metrics = evaluator.over_clients(evaluator.clients(vector(2)), np.zeros(3))
    assert metrics["train_loss"] == pytest.approx(0.5 * 2 + 0.3 * 1 + 0.2 * 6)


@pytest.mark.parametrize(("samples", "expected"), [(1, [2, 0, 8]), (2, [2, 1, 8]), (9, [2, 1, 6])])
def test_the_first_samples_of_each_client(samples, expected) -> None:
    evaluator = on(quadratic(POINTS, [[1, 1, 1]]), point(), samples)
    np.testing.assert_allclose(evaluator.clients(vector(2)).loss, expected)


def test_no_samples_are_refused() -> None:
    with pytest.raises(InputError, match=r"^client_samples is 0; it must be at least 1, or n"):
        on(quadratic(POINTS, [[1, 1, 1]]), point(), 0)


def two_classes(labels: list[list[int]], test: list[int]) -> World:
    """Inputs are ±1 for class 1 and 0; the model below is right wherever its slope is positive."""

    def pool(of: list[int]) -> Pool:
        y = torch.tensor(of)
        return Pool((2.0 * y - 1).double()[:, None], y, classes=2)

    flat = [label for each in labels for label in each]
    offsets = np.concatenate([[0], np.cumsum([len(each) for each in labels])])
    return World(pool(flat), offsets, pool(test), attendance([[1] * len(labels)]))


def test_accuracy_by_hand() -> None:
    # Logits (0, x·w + b) with w = 0, b = 1: class 1 always.
    world = two_classes([[1, 1], [0, 0, 0], [1, 0], [0]], [1, 1, 1, 0])
    evaluator = on(world, Model.of(nn.Linear(1, 2), (1,), 2))
    x = vector(0, 0, 0, 1)  # weights of the two classes, then their biases
    test = evaluator.test(x)
    wrong, right = np.log1p(np.exp(1)), np.log1p(np.exp(-1))
    assert test["test_accuracy"] == 0.75
    assert test["test_loss"] == pytest.approx((3 * right + wrong) / 4)
    scores = evaluator.clients(x)
    assert scores.accuracy is not None
    np.testing.assert_allclose(scores.accuracy, [1, 0, 0.5, 0])
    np.testing.assert_allclose(scores.loss, [right, wrong, (right + wrong) / 2, wrong])
    metrics = evaluator.over_clients(scores, np.array([3, 0, 1, 0]))
    assert metrics["train_accuracy"] == pytest.approx(0.375)
    assert metrics["spread_accuracy"] == pytest.approx(np.std([1, 0, 0.5, 0]))
    assert metrics["decile_accuracy"] == [0, 0, 0.5, 1]  # those who came least first
    assert metrics["never_seen"] == 2
    assert metrics["never_seen_accuracy"] == 0
    seen = evaluator.over_clients(scores, np.array([3, 1, 1, 2]))
    assert seen["never_seen"] == 0
    assert "never_seen_accuracy" not in seen


def test_deciles_of_participation() -> None:
    """25 clients: the tenths that came least to most, the first five with three clients."""
    world = quadratic([0.0] * 25, [[1] * 25])
    draw = np.random.default_rng(0)
    came, accuracy = draw.permutation(25), draw.random(25)
    metrics = on(world, point()).over_clients(ClientScores(accuracy, accuracy), came)
    order = np.argsort(came)
    bounds = [0, 3, 6, 9, 12, 15, 17, 19, 21, 23, 25]
    expected = [accuracy[order[i:j]].mean() for i, j in pairwise(bounds)]
    np.testing.assert_allclose(metrics["decile_accuracy"], expected)


def test_metrics_are_plain_numbers() -> None:
    world = two_classes([[1, 1], [0, 0, 0], [1, 0], [0]], [1, 1, 1, 0])
    evaluator = on(world, Model.of(nn.Linear(1, 2), (1,), 2))
    x = vector(0, 0, 0, 1)
    metrics = evaluator.test(x) | evaluator.over_clients(
        evaluator.clients(x), np.array([3, 0, 1, 0])
    )
    for value in metrics.values():
        assert type(value) in (float, int, list)
        assert not isinstance(value, list) or {type(v) for v in value} == {float}


@pytest.mark.parametrize("chunk", [1, 3, 7, 10_000])
@pytest.mark.parametrize("keep", [0, 1 << 28])
@pytest.mark.parametrize("samples", [None, 2])
def test_evaluation_does_not_depend_on_chunks(chunk, keep, samples, monkeypatch) -> None:
    draw = np.random.default_rng(0)
    sizes = [5, 1, 9, 4]

    def pool(rows: int) -> Pool:
        pixels = torch.from_numpy(draw.integers(256, size=(rows, 1, 5, 5), dtype=np.uint8))
        labels = torch.from_numpy(draw.integers(3, size=rows))
        return Pool(pixels, labels, torch.tensor([0.5]), torch.tensor([0.2]), 3)

    world = World(
        pool(19), np.concatenate([[0], np.cumsum(sizes)]), pool(11), attendance([[1] * 4])
    )
    model = Model.of("cnn", (1, 5, 5), 3, {"dropout": 0.5, "hidden": (4,)})
    x = torch.from_numpy(draw.normal(size=Layout.of(model.module).size))

    def measured():
        evaluator = on(world, model, samples)
        scores = evaluator.clients(x)
        return evaluator.test(x), scores.loss, scores.accuracy

    expected = measured()
    monkeypatch.setattr(evaluate, "_CHUNK", chunk)
    monkeypatch.setattr(evaluate, "_KEEP_BYTES", keep)
    test, loss, accuracy = measured()
    assert test == pytest.approx(expected[0], rel=1e-12)
    np.testing.assert_allclose(loss, expected[1], rtol=1e-12)
    np.testing.assert_array_equal(accuracy, expected[2])


def test_evaluation_leaves_the_model_and_the_mode_alone() -> None:
    evaluator = on(quadratic(POINTS, [[1, 1, 1]]), point())
    module = evaluator.model.module
    before = evaluator.layout.flatten(module)
    evaluator.test(vector(2))
    evaluator.clients(vector(2))
    assert torch.equal(evaluator.layout.flatten(module), before)
    assert module.training
    module.eval()
    evaluator.test(vector(2))
    assert not module.training
