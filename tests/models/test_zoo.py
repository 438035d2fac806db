"""The papers' architectures: sizes, shapes, starts."""

import pytest
import torch

from turnout.errors import InputError
from turnout.models import (
    MODELS,
    Model,
    cnn,
    cnn_wide,
    half_squared,
    linear,
    logistic,
    perceptron,
    point,
)


def size(module: torch.nn.Module) -> int:
    return sum(p.numel() for p in module.parameters())


def test_cnn_for_cifar10_has_the_papers_layers() -> None:
    # 3·32·9 + 32, 32·32·9 + 32, 2048·256 + 256, 256·64 + 64, 64·10 + 10
    assert size(cnn((3, 32, 32), 10)) == 896 + 9_248 + 524_544 + 16_448 + 650
    shapes = [tuple(p.shape) for p in cnn((3, 32, 32), 10).parameters() if p.dim() > 1]
    assert shapes == [(32, 3, 3, 3), (32, 32, 3, 3), (256, 2048), (64, 256), (10, 64)]


def test_dropout_sits_before_each_fully_connected_layer() -> None:
    names = [type(layer).__name__ for layer in cnn((3, 32, 32), 100, dropout=0.2)]
    assert names == (
        ["Conv", "ReLU", "MaxPool2d"] * 2
        + ["Flatten", "Dropout", "Dense"]
        + ["ReLU", "Dropout", "Dense"] * 2
    )


def test_cnn_wide_for_cifar10() -> None:
    assert size(cnn_wide((3, 32, 32), 10)) == 2_432 + 51_264 + 4096 * 512 + 512 + 5_130


@pytest.mark.parametrize("shape", [(1, 4, 4), (1, 8, 8), (1, 28, 28), (3, 32, 32), (2, 5, 9)])
@pytest.mark.parametrize("build", [logistic, perceptron, cnn, cnn_wide])
def test_outputs_are_batch_by_classes(build, shape) -> None:
    assert build(shape, 7)(torch.zeros(3, *shape)).shape == (3, 7)


def test_perceptron_widths() -> None:
    assert size(perceptron((1, 28, 28), 10)) == 784 * 64 + 64 + 650
    assert size(perceptron((5,), 3, hidden=())) == size(logistic((5,), 3)) == 18


def test_kaiming_weights_and_zero_biases() -> None:
    module = cnn((3, 32, 32), 10)
    for name, parameter in module.named_parameters():
        if name.endswith("bias"):
            assert not parameter.any()
        elif parameter.numel() > 2000:
            fan_in = parameter[0].numel()
            assert parameter.std().item() == pytest.approx((2 / fan_in) ** 0.5, rel=0.1)


def test_point_is_the_quadratic() -> None:
    module = point(2, start=(1.0, 5.0))
    z = torch.tensor([[1.0, 2.0], [0.0, 0.0]])
    loss = half_squared(module(z), torch.zeros(2, 2))
    assert loss.tolist() == [4.5, 13.0]
    loss.mean().backward()
    assert module.x.grad.tolist() == [0.5, 4.0]  # x − mean z


def test_linear_is_least_squares() -> None:
    module = linear(2)
    loss = half_squared(module(torch.tensor([[1.0, 2.0]])), torch.tensor([3.0]))
    loss.sum().backward()
    assert loss.tolist() == [4.5]
    assert module.x.grad.tolist() == [-3.0, -6.0]


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: cnn((784,), 10), "input shape is"),
        (lambda: cnn((1, 3, 9), 10), "at least 4 × 4"),
        (lambda: logistic((), 10), "input shape is"),
        (lambda: logistic((4,), 1), "classes is 1"),
        (lambda: perceptron((4,), 2, hidden=(0,)), "hidden is"),
        (lambda: cnn((1, 8, 8), 2, dropout=1.0), "dropout is 1.0"),
        (lambda: point(2, start=(1.0,)), "start is"),
    ],
)
def test_refusals(build, message) -> None:
    with pytest.raises(InputError, match=message):
        build()


@pytest.mark.parametrize("name", sorted(MODELS))
def test_every_known_model_runs_with_its_loss(name) -> None:
    model = Model.of(name, (1, 8, 8) if name not in ("point", "linear") else (6,), 10)
    inputs = torch.zeros(2, 1, 8, 8) if model.classification else torch.zeros(2, 6)
    output = model.module(inputs)
    target = torch.zeros(2, dtype=torch.int64) if model.classification else output.detach() * 0
    assert model.loss(output, target).shape == (2,)
    assert MODELS[name].summary


@pytest.mark.parametrize("name", ["perceptron", "cnn", "cnn_wide"])
def test_layers_without_width_are_refused(name) -> None:
    with pytest.raises(InputError, match=r"hidden is \[3, 0\]; it must be widths of at least 1"):
        Model.of(name, (1, 8, 8), 3, {"hidden": (3, 0)})
