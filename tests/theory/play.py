"""turnout's own rounds on quadratics, with gradients in closed form so that long runs are short."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from turnout import Model, World, draws
from turnout import round as protocol
from turnout.algorithm import Algorithm
from turnout.data import Pool, Problem
from turnout.participation import Participation
from turnout.simulator import Simulation, advance, begin

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Closed:
    """∇F_n(x) = H(x − c_n) + noise, for a block of clients."""

    hessian: Tensor
    centres: Tensor  # [C, d]
    noise: Tensor  # [C, steps, d]

    @property
    def steps(self) -> Sequence[int]:
        return [self.noise.shape[1]] * len(self.centres)

    def gradient(self, x: Tensor, step: int) -> Tensor:
        return (x - self.centres) @ self.hessian + self.noise[:, step]


def play(
    algorithm: Algorithm,
    hessian: Floats,
    centres: Floats,
    mask: NDArray[np.bool_],
    start: Floats | None = None,
    noise: float = 0.0,
    server_noise: float = 0.0,
    seed: int = 0,
) -> Floats:
    """x_0 … x_T [T + 1, d]; noise of variance σ², spread evenly over the coordinates.

    The server's own data are centred at the mean of all centres.
    """
    dim = centres.shape[1]
    H, c = torch.from_numpy(hessian), torch.from_numpy(centres)
    x = torch.zeros(dim, dtype=torch.float64) if start is None else torch.from_numpy(start)
    state = protocol.start(algorithm, x, len(centres))
    generator = draws.generator(seed, "noise of tests")

    def noisy(count: int, steps: int, sigma: float) -> Tensor:
        return torch.from_numpy(generator.normal(0, sigma / dim**0.5, (count, steps, dim)))

    path = [state.x.numpy().copy()]
    for t, here in enumerate(mask):
        if protocol.asks_clients(algorithm, seed, t):
            rows = np.flatnonzero(here)
            if len(rows):
                index = torch.from_numpy(rows)
                work = Closed(H, c[index], noisy(len(rows), algorithm.local.steps or 1, noise))
                sent = protocol.announce(algorithm, state, rows)
                upload, _ = protocol.client_step(algorithm, sent, work, {})
                state = protocol.absorb(algorithm, state, rows, upload)
            state = protocol.close(algorithm, state)
        else:
            assert algorithm.assistance is not None
            own = noisy(1, algorithm.assistance.local.steps or 1, server_noise)
            state = protocol.server_step(algorithm, state, Closed(H, c.mean(0, keepdim=True), own))
        path.append(state.x.numpy().copy())
    return np.array(path)


def simulated(
    algorithm: Algorithm,
    problem: Problem,
    process: Participation,
    rounds: int,
    start: Floats | None = None,
    server: Pool | None = None,
    seed: int = 0,
) -> Floats:
    """The same path by `turnout.simulate`'s own rounds, on the samples of a problem."""
    dim = len(problem.hessian)
    world = World.build(problem.pool, problem.partition, problem.pool, process, server)
    model = Model.of(problem.model, (dim,))
    simulation = Simulation.of(
        algorithm, world, model, seed, engine="reference", dtype=torch.float64
    )
    x = torch.zeros(dim, dtype=torch.float64) if start is None else torch.from_numpy(start)
    progress = begin(simulation, x)
    path = [x.numpy().copy()]
    for _ in range(rounds):
        advance(simulation, progress)
        path.append(progress.server.x.numpy().copy())
    return np.array(path)
