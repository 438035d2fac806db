"""What the conformance suite runs: algorithms × engines × drivers. Each is one line to add."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from tests.conformance.worlds import attendance
from torch import Tensor

from turnout import algorithms, engine
from turnout.algorithm import Algorithm
from turnout.data.pool import Pool
from turnout.models import Model
from turnout.parts.local import Local, proximal, sgd
from turnout.simulator import Simulation, advance, begin
from turnout.world import World

LOCAL = Local(
    lr=0.3, steps=None, epochs=1, batch_size=3
)  # more data, more steps: blocks are uneven

_a = algorithms
_P = (0.9, 0.6, 0.5, 0.1, 0.1, 0.4)
_GROUPS = (0, 0, 1, 2, 1, 0)
_LABELS = [[3, 0, 0], [1, 4, 0], [0, 0, 8], [2, 1, 1], [0, 6, 0], [1, 1, 0]]
_FEDDU: dict[str, Any] = {"labels": _LABELS, "server_labels": [1, 1, 3], "held_out": 0.6}

CASES: dict[str, Algorithm] = {
    "fedavg": _a.fedavg(local=LOCAL),
    "fedavg, faster server": _a.fedavg(server_lr=1.5, local=LOCAL),
    "fedavg, momentum": _a.fedavg(
        local=Local(0.1, 4, None, 2, sgd(momentum=0.9, weight_decay=0.01, clip=1.0))
    ),
    "fedavg, proximal": _a.fedavg(local=Local(0.1, 4, None, 2, proximal(0.5))),
    "average_all": _a.average_all(local=LOCAL),
    "known": _a.known(_P, local=LOCAL),
    "fedau": _a.fedau(cutoff=3, local=LOCAL),
    "fedau, no cutoff": _a.fedau(cutoff=None, local=LOCAL),
    "fedau, decay": _a.fedau(cutoff=4, decay=0.3, local=LOCAL),
    "fedau, groups": _a.fedau(cutoff=3, groups=_GROUPS, local=LOCAL),
    "fedau, groups with decay": _a.fedau(cutoff=3, decay=0.3, groups=_GROUPS, local=LOCAL),
    "amplified": _a.amplified(period=3, factor=2.0, inner=_a.fedavg(local=LOCAL)),
    "amplified, fedau": _a.amplified(period=3, factor=1.5, inner=_a.fedau(local=LOCAL)),
    "amplified, mifa": _a.amplified(period=2, factor=1.5, inner=_a.mifa(local=LOCAL)),
    "amplified, period found": _a.amplified(None, 2.0, _a.fedau(cutoff=3, local=LOCAL), longest=4),
    "safari": _a.safari(q=0.6, inner=_a.fedavg(local=LOCAL)),
    "safari, epochs": _a.safari(0.6, None, 2, inner=_a.fedavg(local=LOCAL)),
    "safari, fedau": _a.safari(q=0.6, inner=_a.fedau(cutoff=3, local=LOCAL)),
    "safari, scaffold": _a.safari(q=0.6, inner=_a.scaffold(local=LOCAL)),
    "stand_in": _a.stand_in(inner=_a.average_all(local=LOCAL)),
    "stand_in, unseen, fedau": _a.stand_in("unseen", _a.fedau(cutoff=3, local=LOCAL)),
    "stand_in, unseen, fedkeep": _a.stand_in("unseen", _a.fedkeep(cutoff=3, local=LOCAL)),
    "amplified, stand_in": _a.amplified(3, 1.5, _a.stand_in(inner=_a.average_all(local=LOCAL))),
    "feddu": _a.feddu(**_FEDDU, server_batch=2, inner=_a.fedavg(local=LOCAL)),
    "feddu, fedau": _a.feddu(**_FEDDU, server_steps=2, inner=_a.fedau(cutoff=3, local=LOCAL)),
    "feddu, fedkeep": _a.feddu(**_FEDDU, decay=0.9, inner=_a.fedkeep(cutoff=3, local=LOCAL)),
    "fedbuff": _a.fedbuff(buffer=3, local=LOCAL),
    "fedbuff, one": _a.fedbuff(buffer=1, power=1.0, local=LOCAL),
    "amplified, fedbuff": _a.amplified(2, 1.5, _a.fedbuff(buffer=2, local=LOCAL)),
    "ca_fed": _a.ca_fed(local=LOCAL),
    "ca_fed, little bias": _a.ca_fed(bias=0.1, smoothing=0.5, server_lr=0.5, local=LOCAL),
    "f3ast": _a.f3ast(per_round=2, decay=0.2, local=LOCAL),
    "f3ast, one": _a.f3ast(per_round=1, decay=0.1, floor=0.05, local=LOCAL),
    "safari, f3ast": _a.safari(q=0.6, inner=_a.f3ast(per_round=2, decay=0.2, local=LOCAL)),
    "fltrust": _a.fltrust(local=LOCAL),
    "amplified, fltrust": _a.amplified(3, 1.5, _a.fltrust(server_lr=0.8, local=LOCAL)),
    "server_only": _a.server_only(server_steps=2, server_batch=3),
    "centralised": _a.centralised(steps=3, batch_size=4),
    "fedvarp": _a.fedvarp(local=LOCAL),
    "fedvarp, clusters": _a.fedvarp(clusters=_GROUPS, local=LOCAL),
    "mifa": _a.mifa(local=LOCAL),
    "mifa, seen": _a.mifa("seen", local=LOCAL),
    "mifa, wait": _a.mifa("wait", local=LOCAL),
    "mifa, client-held": _a.mifa(memory="client", local=LOCAL),
    "mifa, seen, client-held": _a.mifa("seen", "client", local=LOCAL),
    "scaffold": _a.scaffold(local=LOCAL),
    "fedprox": _a.fedprox(mu=0.5, local=LOCAL),
    "fedavgm": _a.fedavgm(inner=_a.fedavg(local=LOCAL)),
    "fedavgm, fedau": _a.fedavgm(server_momentum=0.5, inner=_a.fedau(cutoff=3, local=LOCAL)),
    "fedadam": _a.fedadam(inner=_a.fedavg(local=LOCAL)),
    "fedadam, fedau": _a.fedadam(0.02, inner=_a.fedau(cutoff=3, local=LOCAL)),
    "fedyogi": _a.fedyogi(inner=_a.fedavg(local=LOCAL)),
    "fedyogi, fedkeep": _a.fedyogi(inner=_a.fedkeep(local=LOCAL)),
    "amplified_scaffold": _a.amplified_scaffold(period=3, factor=1.5, local=LOCAL),
    "amplified_scaffold, momentum": _a.amplified_scaffold(
        2, local=Local(0.1, 4, None, 2, sgd(momentum=0.5))
    ),
    "fedstale": _a.fedstale(cutoff=3, local=LOCAL),
    "fedstale, by those delivered": _a.fedstale(0.7, weights="delivered", local=LOCAL),
    "focus": _a.focus(local=LOCAL),
    "safari, focus": _a.safari(q=0.6, inner=_a.focus(local=LOCAL)),
    "fedawe": _a.fedawe(local=LOCAL),
    "fedawe, cap": _a.fedawe(echo=0.8, cap=2, local=LOCAL),
    "fedavgm, fedawe": _a.fedavgm(server_momentum=0.2, inner=_a.fedawe(cap=2, local=LOCAL)),
    "fedkeep": _a.fedkeep(cutoff=3, local=LOCAL),
    "fedkeep, decay": _a.fedkeep(beta=1.0, cutoff=4, decay=0.3, local=LOCAL),
    "fedkeep, shrink": _a.fedkeep(cutoff=3, shrink=1.0, local=LOCAL),
    "fedkeep, shrink with decay": _a.fedkeep(cutoff=3, decay=0.3, shrink=0.5, local=LOCAL),
    "amplified, fedkeep": _a.amplified(period=3, factor=1.5, inner=_a.fedkeep(local=LOCAL)),
    "safari, fedkeep": _a.safari(q=0.6, inner=_a.fedkeep(local=LOCAL)),
    "wait_minibatch": _a.wait_minibatch(local=LOCAL),
    "wait_full": _a.wait_full(local=LOCAL),
}
"""What comes before the comma is the recipe's name."""

ENGINES: list[str] = sorted(engine.ENGINES)

Driver = Callable[..., list[Tensor]]
"""(algorithm, world, model, rounds, *, engine, dtype, seed) → the model after each round."""


def in_process(
    algorithm: Algorithm,
    world: World,
    model: Model,
    rounds: int,
    *,
    engine: str = "reference",
    dtype: torch.dtype = torch.float64,
    seed: int = 0,
    **more: Any,
) -> list[Tensor]:
    """The simulator."""
    simulation = Simulation.of(algorithm, world, model, seed, engine, dtype, **more)
    progress = begin(simulation)
    models = []
    for _ in range(rounds):
        advance(simulation, progress)
        models.append(progress.server.x.clone())
    return models


DRIVERS: dict[str, Driver] = {"simulator": in_process}

# The trace. Client 0 always comes, 3 never does, 4 comes once; rounds 3 and 7 are empty.
DELIVERED = np.array(
    [
        [1, 1, 0, 0, 0, 1],
        [1, 0, 1, 0, 0, 0],
        [1, 1, 1, 0, 0, 1],
        [0, 0, 0, 0, 0, 0],
        [1, 1, 0, 0, 1, 0],
        [1, 0, 1, 0, 0, 0],
        [1, 1, 0, 0, 0, 1],
        [0, 0, 0, 0, 0, 0],
        [1, 0, 1, 0, 0, 1],
        [1, 1, 1, 0, 0, 0],
    ],
    dtype=bool,
)
ROUNDS = len(DELIVERED)
# Lost updates: those of client 3, always; everybody's in round 3; some others.
ASKED = DELIVERED | np.array(
    [[0, 0, t == 6, True, t in (1, 5), t == 4] for t in range(ROUNDS)], dtype=bool
)
ASKED[3] = True
ASKED[7] = False  # and nobody was asked

_SIZES = (3, 5, 8, 4, 6, 2)


def classification(delivered=DELIVERED, asked=None, sizes=_SIZES, seed=0) -> World:
    """Three classes in four dimensions, clients of different sizes, five samples at the server."""
    draw = np.random.default_rng(seed)

    def some(count: int) -> Pool:
        labels = draw.integers(3, size=count)
        inputs = draw.normal(size=(count, 4)) + 2 * np.eye(3, 4)[labels]
        return Pool(torch.from_numpy(inputs), torch.from_numpy(labels), classes=3)

    offsets = np.concatenate([[0], np.cumsum(sizes)])
    train = some(int(offsets[-1]))
    return World(train, offsets, some(7), attendance(delivered, asked), some(5))


def logistic() -> Model:
    return Model.of("logistic", (4,), 3)
