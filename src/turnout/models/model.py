"""A model: a module, its loss, and whether that loss counts classes."""

import importlib
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, NamedTuple

import torch
from torch import nn

from turnout.errors import InputError, choose
from turnout.models import zoo
from turnout.models.losses import LOSSES, Loss, cross_entropy, half_squared
from turnout.models.prepare import prepare
from turnout.wording import counted


class Recipe(NamedTuple):
    """How a model that turnout knows by name is built."""

    build: Callable[..., nn.Module]
    """(input_shape, classes, **options) → module"""
    options: Mapping[str, Any]
    """The options that `build` takes, with their defaults."""
    loss: Loss
    summary: str


def _recipe(build: Callable[..., nn.Module], loss: Loss, summary: str) -> Recipe:
    own = {
        name: parameter.default
        for name, parameter in inspect.signature(build).parameters.items()
        if name not in ("input_shape", "classes", "dim")
    }
    return Recipe(build, own, loss, summary)


MODELS: dict[str, Recipe] = {
    "logistic": _recipe(zoo.logistic, cross_entropy, "multinomial logistic regression"),
    "perceptron": _recipe(zoo.perceptron, cross_entropy, "fully connected layers with ReLU"),
    "cnn": _recipe(zoo.cnn, cross_entropy, "FedAU's two 3×3 convolutions of 32 filters"),
    "cnn_wide": _recipe(zoo.cnn_wide, cross_entropy, "two 5×5 convolutions, for SAFARI's CIFAR-10"),
    "point": _recipe(zoo.point, half_squared, "a free vector x, for the quadratics ½‖x − z‖²"),
    "linear": _recipe(zoo.linear, half_squared, "⟨a, x⟩, for least squares"),
}


@dataclass(frozen=True)
class Model:
    """What a world's samples are fitted with."""

    module: nn.Module
    loss: Loss
    """(output, target) → one number a sample."""
    classification: bool
    """Whether accuracy means anything."""

    def __repr__(self) -> str:
        parameters = counted(sum(p.numel() for p in self.module.parameters()), "parameter")
        layers = type(self.module).__name__
        if isinstance(self.module, nn.Sequential):
            layers = " → ".join(type(layer).__name__ for layer in self.module)
        return f"<model: {layers}; {parameters}, {self.loss.__name__}>"

    @staticmethod
    def of(
        source: nn.Module | str,
        input_shape: Sequence[int] = (),
        classes: int | None = None,
        options: Mapping[str, Any] | None = None,
        loss: Loss | str | None = None,
    ) -> "Model":
        """A model from a module, from the name of a known one, or from "package.module:Name".

        Name may be a module class or a function that returns a module; it gets `options`, and
        `input_shape` and `classes` where it has parameters of these names. The default loss is
        cross-entropy where there are classes, half the squared error otherwise.

        >>> Model.of("cnn", (3, 32, 32), 10, {"dropout": 0.2}).classification
        True
        """
        known = MODELS.get(source) if isinstance(source, str) else None
        if loss is None:
            default = half_squared if classes is None else cross_entropy
            loss = default if known is None else known.loss
        elif isinstance(loss, str):
            loss = LOSSES[choose("loss", loss, LOSSES)]
        if isinstance(source, str):
            module = _build(source, tuple(input_shape), classes, dict(options or {}))
        else:
            module = source
        return Model(prepare(module), loss, loss is cross_entropy)


def _build(
    source: str, input_shape: tuple[int, ...], classes: int | None, options: dict[str, Any]
) -> nn.Module:
    factory = _locate(source) if ":" in source else MODELS[choose("model", source, MODELS)].build
    if isinstance(factory, nn.Module):
        return factory
    if not callable(factory):
        raise InputError(
            f"model {source!r} is {factory!r}; it must be a torch.nn.Module, a subclass of it, or "
            "a function that returns one"
        )
    signature = inspect.signature(factory)
    offered = {"input_shape": input_shape, "classes": classes, "dim": prod(input_shape)}
    given = {name: value for name, value in offered.items() if name in signature.parameters}
    arguments = {**given, **options}
    try:
        signature.bind(**arguments)
    except TypeError as error:
        raise InputError(
            f"options of model {source!r} are {options}; {error}; it takes {signature}"
        ) from None
    # A constructor may draw: its draws must not depend on, or move, the global generator.
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(0)
        built = factory(**arguments)
    if not isinstance(built, nn.Module):
        raise InputError(
            f"model {source!r} returned a {type(built).__name__}; it must be a torch.nn.Module"
        )
    return built


def _locate(source: str) -> Any:
    package, _, name = source.partition(":")
    try:
        found: Any = importlib.import_module(package)
        for part in name.split("."):
            found = getattr(found, part)
    except Exception as error:  # whatever an imported file raises is the user's to read
        raise InputError(
            f"model {source!r} cannot be imported ({type(error).__name__}: {error}); it must be "
            "package.module:Name, with the package on the Python path"
        ) from error
    return found
