"""Small worlds made by hand: attendance as a table, a sample or a few a client, exact numbers."""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from turnout.algorithm import Algorithm
from turnout.data.pool import Pool
from turnout.models import Model
from turnout.participation.process import Attendance, Participation
from turnout.parts.local import Local
from turnout.simulator import Simulation, advance, begin
from turnout.world import World

HALF = Local(lr=0.5, steps=1, batch_size=None)
"""One step that takes a client half the way: Δ_i = (z_i − x)/2, exact in floating point."""


def attendance(delivered: ArrayLike, asked: ArrayLike | None = None) -> Participation:
    """Who delivers, and who is asked, as [rounds, clients] tables that repeat."""
    arrived = np.asarray(delivered, dtype=bool)
    table = arrived if asked is None else np.asarray(asked, dtype=bool)
    assert not (arrived & ~table).any(), "only those who were asked can deliver"

    def step(state, round):
        t = round % len(table)
        return Attendance(np.flatnonzero(table[t]), np.flatnonzero(arrived[t])), state

    return Participation("by hand", table.shape[1], dict, step)


def pool(z: ArrayLike) -> Pool:
    """Samples of ½‖x − z‖², a row of `z` each; plain numbers make a space of one dimension."""
    points = torch.tensor(np.asarray(z, dtype=np.float64))
    points = points[:, None] if points.dim() == 1 else points
    return Pool(points, torch.zeros_like(points), name="points")


def quadratic(
    z: Sequence[ArrayLike],
    delivered: ArrayLike,
    asked: ArrayLike | None = None,
    server: ArrayLike | None = None,
    shares: ArrayLike | None = None,
) -> World:
    """F_n is the mean of ½‖x − z‖² over client n's points: `z[n]`, one number or a list of them."""
    held = [np.atleast_1d(np.asarray(points, dtype=np.float64)) for points in z]
    train = pool(np.concatenate(held))
    return World(
        train,
        np.concatenate([[0], np.cumsum([len(points) for points in held])]),
        train,
        attendance(delivered, asked),
        None if server is None else pool(server),
        None if shares is None else np.asarray(shares, dtype=np.float64),
    )


def point(dim: int = 1) -> Model:
    return Model.of("point", options={"dim": dim})


def path(
    algorithm: Algorithm,
    world: World,
    rounds: int,
    start: ArrayLike,
    seed: int = 0,
    engine: str = "reference",
) -> NDArray[np.float64]:
    """The model after each round, [rounds, d], in float64."""
    x = torch.tensor(np.atleast_1d(np.asarray(start, dtype=np.float64)))
    simulation = Simulation.of(algorithm, world, point(len(x)), seed, engine, torch.float64)
    progress = begin(simulation, x)
    out = []
    for _ in range(rounds):
        advance(simulation, progress)
        out.append(progress.server.x.numpy().copy())
    return np.array(out)


def walk(algorithm: Algorithm, z, delivered, start: float, seed: int = 0, **more) -> list[float]:
    """`path` on a line, through the rounds of the table, as plain numbers."""
    world = quadratic(z, delivered, **more)
    steps = path(algorithm, world, len(np.asarray(delivered)), start, seed)
    return steps[:, 0].tolist()
