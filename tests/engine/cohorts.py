"""Cohorts of clients with uneven data, one for each kind of model, trained by an engine."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache

import numpy as np
import torch
from torch import Tensor, nn

from turnout.algorithm import Algorithm
from turnout.algorithms import fedau
from turnout.algorithms.scaffold import control_variates
from turnout.data.augment import Augmentation
from turnout.data.pool import Pool
from turnout.engine.contract import Engine, Training
from turnout.models import Model, initialise
from turnout.parts.local import Local, proximal, sgd
from turnout.round import Broadcast, announce, keeps, start

SIZES = (7, 3, 12, 1, 5)
OFFSETS = np.concatenate([[0], np.cumsum(SIZES)])
ROWS = np.array([3, 2, 0, 4])  # neither all of them, nor in order, nor by their steps
SHARES = np.array([0.3, 0.1, 0.2, 0.25, 0.15])

LOCALS = {
    "steps": Local(0.1, 3, None, 4),
    "epochs": Local(0.1, None, 2, 2),
    "all data, momentum": Local(0.05, 3, None, None, sgd(0.9, 0.1, 0.5)),
    "proximal": Local(0.1, 3, None, 2, proximal(0.5)),
    "control variates": Local(0.1, None, 1, 2, control_variates()),
}


def _pixels(channels: int) -> Pool:
    draw = np.random.default_rng(1)
    pixels = draw.integers(256, size=(sum(SIZES), channels, 8, 8), dtype=np.uint8)
    labels = torch.from_numpy(draw.integers(3, size=sum(SIZES)))
    mean, std = torch.tensor([0.4, 0.5, 0.1])[:channels], torch.tensor([0.3, 0.2, 0.4])[:channels]
    return Pool(torch.from_numpy(pixels), labels, mean, std, classes=3)


def _numbers(targets: tuple[int, ...]) -> Pool:
    draw = np.random.default_rng(2)
    inputs = torch.from_numpy(draw.normal(size=(sum(SIZES), 6)))
    return Pool(inputs, torch.from_numpy(draw.normal(size=(sum(SIZES), *targets))))


def _deep() -> nn.Module:
    """All that can be done by hand: nested, dropout on inputs and twice, layers without a bias."""
    return nn.Sequential(
        nn.Flatten(),
        nn.Dropout(0.2),
        nn.Sequential(nn.Linear(192, 9, bias=False), nn.Dropout(0.3), nn.ReLU(inplace=True)),
        nn.Linear(9, 5),
        nn.Linear(5, 7),
        nn.ReLU(),
        nn.Dropout(0.1),
        nn.Dropout(0.4),
        nn.Linear(7, 3, bias=False),
    )


_KINDS: dict[str, Callable[[], tuple[Model, Pool, Augmentation | None]]] = {
    "logistic": lambda: (Model.of("logistic", (1, 8, 8), 3), _pixels(1), None),
    "perceptron, colours": lambda: (Model.of("perceptron", (3, 8, 8), 3), _pixels(3), None),
    "perceptron, crops": lambda: (
        Model.of("perceptron", (1, 8, 8), 3, {"hidden": (5,)}),
        _pixels(1),
        Augmentation(2),
    ),
    "deep, dropout": lambda: (Model.of(_deep(), classes=3), _pixels(3), None),
    "regression": lambda: (Model.of(nn.Linear(6, 2)), _numbers((2,)), None),
    "regression, one number": lambda: (
        Model.of(nn.Sequential(nn.Linear(6, 4), nn.ReLU(), nn.Linear(4, 1))),
        _numbers(()),
        None,
    ),
    "point": lambda: (Model.of("point", (6,)), _numbers((6,)), None),
    "linear": lambda: (Model.of("linear", (6,)), _numbers(()), None),
    "tanh": lambda: (
        Model.of(
            nn.Sequential(nn.Flatten(), nn.Linear(64, 4), nn.Tanh(), nn.Linear(4, 3)), classes=3
        ),
        _pixels(1),
        None,
    ),
    "cnn, dropout": lambda: (
        Model.of("cnn", (3, 8, 8), 3, {"dropout": 0.3, "hidden": (6,)}),
        _pixels(3),
        None,
    ),
    "cnn_wide": lambda: (Model.of("cnn_wide", (1, 8, 8), 3, {"hidden": (6,)}), _pixels(1), None),
}
KINDS = list(_KINDS)
BY_HAND = KINDS[:6]


@cache
def training(kind: str, dtype: torch.dtype = torch.float64) -> Training:
    model, pool, augment = _KINDS[kind]()
    module = initialise(model.module, 0).to(dtype).train()
    return Training(replace(model, module=module), pool, OFFSETS, 5, dtype, augment)


def algorithm(local: Local) -> Algorithm:
    return fedau(cutoff=2, local=local)


def broadcast_of(whole: Training, local: Local, rows: np.ndarray = ROWS) -> Broadcast:
    """Round 3, after one in which client 2 came; nothing that is sent is zero or one."""
    x = whole.layout.flatten(whole.model.module)
    state = start(algorithm(local), x, len(SIZES), SHARES)
    state.weight = algorithm(local).weight.observe(state.weight, 1, np.array([2]))
    state.client_round = 3
    state.means = {name: torch.full_like(x, 0.02) for name in state.means}
    return announce(algorithm(local), state, rows)


def updates(
    engine: Engine,
    whole: Training,
    local: Local,
    rows: np.ndarray = ROWS,
    broadcast: Broadcast | None = None,
) -> dict[int, Tensor]:
    """What each client uploads, in the order in which it comes."""

    def recall(some: np.ndarray) -> dict[str, Tensor]:
        held = 0.01 * torch.from_numpy(some + 1.0).to(whole.dtype)[:, None]
        return {name: held.repeat(1, whole.layout.size) for name in keeps(algorithm(local))}

    sent = broadcast or broadcast_of(whole, local, rows)
    found: dict[int, Tensor] = {}
    for block in engine.train(algorithm(local), sent, rows, recall):
        parts = [block.upload.update, *block.upload.changes.values(), *block.kept.values()]
        found |= zip(block.rows.tolist(), torch.cat(parts, 1), strict=True)
    assert sorted(found) == sorted(rows.tolist())
    return found
