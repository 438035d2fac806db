"""The theorems' constants, measured on a model and the data of a world.

A theorem's L, σ, δ or G bounds something at every x; a measurement sees a few points. So these are
lower bounds of the constants: give several points (the start, some on the way, the end of a run)
and take the bounds made of them as estimates, however explicit their own constants. On quadratics,
where curvature, noise and divergence are the same everywhere, they are exact.
"""

from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.func import functional_call, grad, vmap

from turnout import draws
from turnout.data.pool import Pool
from turnout.errors import require
from turnout.flat import Layout
from turnout.models import Model
from turnout.theory.bound import counts
from turnout.theory.constants import Constants
from turnout.world import World

Floats = NDArray[np.float64]

_CHUNK_NUMBERS = 1 << 23  # of per-sample gradients held at once
_ROWS = 2048


def estimate(
    model: Model,
    world: World,
    points: Sequence[Tensor] | None = None,
    batch_size: int | None = 16,
    server_batch: int | None = 64,
    floor: float = 0.0,
    curvature_clients: int = 10,
    lanczos_steps: int = 30,
    seed: int = 0,
    dtype: torch.dtype = torch.float64,
) -> Constants:
    """L, μ, F, σ, δ = σ_G, G, σ_s and ζ at these points [d] (the model's own if not given).

    `gap` is f(first point) − `floor`, a value that f never goes below. Noise is that of mini-batches
    drawn without replacement. L is the largest curvature of f and of `curvature_clients` clients, by
    Lanczos iteration; μ is the smallest (0 if negative), and 0 unless `lanczos_steps` ≥ d, since a
    part of the iterations would overstate it. With `shares`, F_n stands for
    N·q_n·F_n, as updates are scaled. Dropout is off. Clients with rate 0 never come: ζ is the
    distance of the others' mean gradient from ∇f.

    >>> from turnout.data import least_squares
    >>> from turnout.participation import always
    >>> problem = least_squares(clients=4, dim=3, samples=5, smoothness=2.0, divergence=3.0)
    >>> world = World.build(problem.pool, problem.partition, problem.pool, always(4))
    >>> constants = estimate(Model.of("linear", (3,)), world, batch_size=1)
    >>> round(constants.smoothness, 6), round(constants.divergence, 6), round(constants.noise, 6)
    (2.0, 3.0, 1.0)
    """
    counts(lanczos_steps=lanczos_steps)
    fits = curvature_clients >= 0
    require(fits, "curvature_clients", curvature_clients, "a whole number of at least 0")
    losses = Losses.of(model, dtype)
    where = losses.points(points)
    scale = _scale(world)
    noise = divergence = gradient = server_noise = bias = 0.0
    missing = _never(world)
    for x in where:
        gradients, variances = _client_statistics(losses, world, x, batch_size)
        gradients *= scale[:, None]
        mean = gradients.mean(axis=0)
        apart = np.linalg.norm(gradients - mean, axis=1)
        noise = max(noise, float(np.sqrt((variances * scale**2).max())))
        divergence = max(divergence, float(apart.max()))
        gradient = max(gradient, float(np.linalg.norm(mean)))
        if missing is not None and not missing.all():
            come = gradients[~missing].mean(axis=0)
            bias = max(bias, float(np.linalg.norm(come - mean)))
        if world.server is not None:
            _, variance = losses.statistics(x, world.server, slice(None), server_batch)
            server_noise = max(server_noise, float(np.sqrt(variance)))
    least, most = _curvatures(losses, world, where, scale, curvature_clients, lanczos_steps, seed)
    return Constants(
        smoothness=max(abs(least), abs(most)),
        gap=losses.value(where[0], world, scale) - floor,
        noise=noise,
        divergence=divergence,
        convexity=max(0.0, least) if lanczos_steps >= losses.layout.size else 0.0,
        gradient=gradient,
        server_noise=server_noise,
        bias=None if missing is None else bias,
    )


def client_gradients(
    model: Model, world: World, x: Tensor | None = None, dtype: torch.dtype = torch.float64
) -> Floats:
    """∇F_n(x) of every client on all of its data [N, d]: for `divergence_split`, `Objective.error`."""
    losses = Losses.of(model, dtype)
    (point,) = losses.points(None if x is None else [x])
    return _client_statistics(losses, world, point, None)[0] * _scale(world)[:, None]


@dataclass(frozen=True)
class Losses:
    """One model's losses as functions of the flat vector."""

    model: Model
    layout: Layout
    start: Tensor
    dtype: torch.dtype

    @staticmethod
    def of(model: Model, dtype: torch.dtype) -> "Losses":
        module = deepcopy(model.module).to(dtype).eval()
        layout = Layout.of(module)
        evaluated = Model(module, model.loss, model.classification)
        return Losses(evaluated, layout, layout.flatten(module), dtype)

    def points(self, points: Sequence[Tensor] | None) -> list[Tensor]:
        """The points as vectors of this model."""
        given = [self.start] if points is None else [torch.as_tensor(x) for x in points]
        require(bool(given), "points", 0, "at least one")
        for x in given:
            shape, right = tuple(x.shape), (self.layout.size,)
            require(shape == right, "shape of a point", shape, f"{right}, as the model has it")
        return [x.detach().to(self.dtype) for x in given]

    def mean(self, x: Tensor, inputs: Tensor, targets: Tensor) -> Tensor:
        output = functional_call(self.model.module, self.layout.views(x), (inputs,))
        return self.model.loss(output, targets).mean()

    def chunks(self, pool: Pool, rows: slice, size: int) -> Iterator[tuple[Tensor, Tensor]]:
        """Inputs and targets of these rows, some at a time."""
        start, stop, _ = rows.indices(len(pool))
        for low in range(start, stop, size):
            yield pool.gather(torch.arange(low, min(low + size, stop)), self.dtype)

    def statistics(
        self, x: Tensor, pool: Pool, rows: slice, batch_size: int | None
    ) -> tuple[Floats, float]:
        """The mean gradient over these rows, and the variance of a mini-batch's gradient."""

        def of_one(x: Tensor, inputs: Tensor, targets: Tensor) -> Tensor:
            return self.mean(x, inputs[None], targets[None])

        each = vmap(grad(of_one), in_dims=(None, 0, 0))
        size = max(1, min(_ROWS, _CHUNK_NUMBERS // self.layout.size))
        total, squares, held = torch.zeros_like(x), 0.0, 0
        shift: Tensor | None = None  # about one gradient, so that squares do not cancel
        for inputs, targets in self.chunks(pool, rows, size):
            gradients = each(x, inputs, targets)
            shift = gradients[0] if shift is None else shift
            apart = gradients - shift
            total += apart.sum(0)
            squares += float(apart.square().sum())
            held += len(gradients)
        assert shift is not None  # a world has no empty client
        mean = total / held
        scatter = max(0.0, squares / held - float(mean @ mean))
        batch = held if batch_size is None else min(batch_size, held)
        # Without replacement, and none where the batch is all that there is.
        factor = (held - batch) / (batch * (held - 1)) if held > 1 else 0.0
        return (mean + shift).double().numpy(), scatter * factor

    def value(self, x: Tensor, world: World, scale: Floats) -> float:
        """f(x)."""
        values = [
            sum(
                float(self.mean(x, inputs, targets)) * len(inputs)
                for inputs, targets in self.chunks(world.train, rows, _ROWS)
            )
            / (rows.stop - rows.start)
            for rows in _clients(world)
        ]
        return float((np.array(values) * scale).mean())

    def curvature(
        self, x: Tensor, pool: Pool, rows: Sequence[slice], weights: Sequence[float]
    ) -> Callable[[Floats], Floats]:
        """v → H v, with H the Hessian of Σ weight · (mean loss over rows)."""

        def product(v: Floats) -> Floats:
            direction = torch.from_numpy(v).to(self.dtype)
            total = torch.zeros_like(x)
            for part, weight in zip(rows, weights, strict=True):
                held = part.stop - part.start
                for inputs, targets in self.chunks(pool, part, _ROWS):
                    at = x.clone().requires_grad_()
                    loss = self.mean(at, inputs, targets)
                    (slope,) = torch.autograd.grad(loss, at, create_graph=True)
                    (bent,) = torch.autograd.grad(slope @ direction, at, materialize_grads=True)
                    total += weight * len(inputs) / held * bent
            return total.double().numpy()

        return product


def extreme_eigenvalues(
    product: Callable[[Floats], Floats], dim: int, steps: int = 30, seed: int = 0
) -> tuple[float, float]:
    """Least and largest eigenvalue of a symmetric matrix, given v → H v (Lanczos).

    Exact after `dim` steps; from fewer, the least comes out too large and the largest too small.

    >>> found = extreme_eigenvalues(lambda v: np.array([3.0, -1.0, 2.0]) * v, dim=3)
    >>> [round(value, 9) for value in found]
    [-1.0, 3.0]
    """
    v = draws.generator(seed, "lanczos").normal(size=dim)
    basis = [v / np.linalg.norm(v)]
    diagonal: list[float] = []
    off: list[float] = []
    for _ in range(min(steps, dim)):
        w = product(basis[-1])
        diagonal.append(float(w @ basis[-1]))
        for _ in range(2):  # once leaves rounding errors that grow
            for u in basis:
                w = w - (w @ u) * u
        length = float(np.linalg.norm(w))
        if length <= 1e-10 * max(map(abs, diagonal)):
            break
        off.append(length)
        basis.append(w / length)
    size = len(diagonal)
    values = np.linalg.eigvalsh(
        np.diag(diagonal) + np.diag(off[: size - 1], 1) + np.diag(off[: size - 1], -1)
    )
    return float(values[0]), float(values[-1])


def _curvatures(
    losses: Losses,
    world: World,
    points: Sequence[Tensor],
    scale: Floats,
    clients: int,
    steps: int,
    seed: int,
) -> tuple[float, float]:
    everybody = _clients(world)
    chosen = draws.generator(seed, "curvature").permutation(len(everybody))[:clients]
    least, most = np.inf, -np.inf
    for x in points:
        whole = losses.curvature(x, world.train, everybody, list(scale / len(everybody)))
        each = [losses.curvature(x, world.train, [everybody[n]], [float(scale[n])]) for n in chosen]
        for product in [whole, *each]:
            low, high = extreme_eigenvalues(product, losses.layout.size, steps, seed)
            least, most = min(least, low), max(most, high)
    return least, most


def _client_statistics(
    losses: Losses, world: World, x: Tensor, batch_size: int | None
) -> tuple[Floats, Floats]:
    found = [losses.statistics(x, world.train, rows, batch_size) for rows in _clients(world)]
    return np.stack([mean for mean, _ in found]), np.array([variance for _, variance in found])


def _clients(world: World) -> list[slice]:
    bounds = world.offsets.tolist()
    return [slice(start, stop) for start, stop in pairwise(bounds)]


def _scale(world: World) -> Floats:
    ones = np.ones(world.clients)
    return ones if world.shares is None else np.asarray(world.shares) * world.clients


def _never(world: World) -> NDArray[np.bool_] | None:
    rates = world.participation.rates
    return None if rates is None else np.asarray(rates) == 0
