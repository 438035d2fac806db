"""The batched engine against the reference: by hand, by vmap, in blocks of any shape."""

import shutil

import numpy as np
import pytest
import torch
from tests.engine.cohorts import (
    BY_HAND,
    KINDS,
    LOCALS,
    ROWS,
    algorithm,
    broadcast_of,
    training,
    updates,
)
from torch import nn

from turnout.data.pool import Pool
from turnout.engine import batched, flat_inputs
from turnout.engine.batched import Batched
from turnout.engine.contract import Training
from turnout.engine.dense import Dense, layers_of
from turnout.engine.reference import Reference
from turnout.models import Model

TOLERANCE = {torch.float64: 1e-10, torch.float32: 2e-5}
"""Of the largest number in a client's upload."""


def agree(found: dict, expected: dict) -> None:
    assert found.keys() == expected.keys()
    for row, vector in expected.items():
        atol = TOLERANCE[vector.dtype] * float(vector.abs().max())
        torch.testing.assert_close(found[row], vector, rtol=0, atol=atol)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("local", LOCALS)
def test_as_the_reference(kind: str, local: str) -> None:
    whole = training(kind)
    found = updates(Batched(whole, workers=1), whole, LOCALS[local])
    agree(found, updates(Reference(whole), whole, LOCALS[local]))


@pytest.mark.parametrize("kind", KINDS)
def test_in_single_precision(kind: str) -> None:
    whole = training(kind, torch.float32)
    found = updates(Batched(whole, workers=1), whole, LOCALS["epochs"])
    agree(found, updates(Reference(whole), whole, LOCALS["epochs"]))


@pytest.mark.parametrize("kind", ["deep, dropout", "tanh", "perceptron, crops"])
@pytest.mark.parametrize("workers", [2, 3, 9])
def test_however_many_workers(kind: str, workers: int, monkeypatch) -> None:
    monkeypatch.setattr(batched, "WORTH", 0)
    whole = training(kind)
    found = updates(Batched(whole, workers), whole, LOCALS["epochs"])
    agree(found, updates(Reference(whole), whole, LOCALS["epochs"]))


@pytest.mark.parametrize("steps", [1, 2, 3])
def test_however_many_steps_of_inputs_are_made_ready_at_once(steps: int, monkeypatch) -> None:
    whole = training("perceptron, colours")
    expected = updates(Reference(whole), whole, LOCALS["epochs"])
    monkeypatch.setattr(flat_inputs, "CHUNK_BYTES", steps * len(ROWS) * 2 * 192 * 8)
    agree(updates(Batched(whole, 1), whole, LOCALS["epochs"]), expected)


def test_blocks_that_memory_allows(monkeypatch) -> None:
    whole = training("logistic")
    monkeypatch.setattr(batched, "BLOCK_BYTES", 12 * whole.layout.size * 8)
    engine = Batched(whole, workers=1)
    sent = broadcast_of(whole, LOCALS["steps"])
    blocks = list(engine.train(algorithm(LOCALS["steps"]), sent, ROWS, lambda rows: {}))
    assert [block.rows.tolist() for block in blocks] == [[3, 2], [0, 4]]


def test_blocks_share_the_steps_and_not_the_heads(monkeypatch) -> None:
    """Client 2 has 6 steps of 13; it works alone while the second worker has the others."""
    monkeypatch.setattr(batched, "WORTH", 0)
    whole, local = training("logistic"), LOCALS["control variates"]
    sent = broadcast_of(whole, LOCALS["steps"])._replace(means={})
    local = LOCALS["epochs"]
    assert whole.steps(local, ROWS).tolist() == [2, 12, 8, 6]
    engine = Batched(whole, workers=2)
    blocks = list(engine.train(algorithm(local), sent, ROWS, lambda rows: {}))
    assert [block.rows.tolist() for block in blocks] == [[2, 0], [4, 3]]


@pytest.mark.parametrize(("more", "blocks"), [(1, 1), (0, 2)])
def test_steps_too_short_to_share_stay_together(more: int, blocks: int, monkeypatch) -> None:
    whole, local = training("logistic"), LOCALS["epochs"]
    products = 2 * len(ROWS) * whole.layout.size  # two samples of each client
    monkeypatch.setattr(batched, "WORTH", products + more)
    sent = broadcast_of(whole, local)
    found = list(Batched(whole, workers=2).train(algorithm(local), sent, ROWS, lambda rows: {}))
    assert len(found) == blocks


@pytest.mark.parametrize("engine", [Batched, Reference])
def test_clients_may_start_apart_with_step_sizes_of_their_own(engine) -> None:
    """As runs of several seeds and settings do that train in one block."""
    whole, local = training("deep, dropout"), LOCALS["steps"]
    sent = broadcast_of(whole, local)
    x = sent.x + 0.01 * torch.arange(4.0, dtype=sent.x.dtype)[:, None]
    lr = torch.tensor([[0.1], [0.2], [0.05], [0.3]], dtype=sent.x.dtype)
    found = updates(engine(whole), whole, local, ROWS, sent._replace(x=x, lr=lr))
    for place, row in enumerate(ROWS.tolist()):
        one = sent.part([place])._replace(x=x[place], lr=float(lr[place]))
        agree({row: found[row]}, updates(Reference(whole), whole, local, np.array([row]), one))


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("g++") is None, reason="no C++ compiler here")
def test_compiled() -> None:
    whole = training("tanh")
    found = updates(Batched(whole, 1, compiled=True), whole, LOCALS["steps"])
    agree(found, updates(Reference(whole), whole, LOCALS["steps"]))


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_done_by_hand(kind: str) -> None:
    whole = training(kind)
    work = Batched(whole).work(whole.clients(LOCALS["steps"], ROWS, 0))
    assert isinstance(work, Dense) == (kind in BY_HAND)


class Doubled(nn.Linear):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(2 * x)


def tied() -> nn.Module:
    first, second = nn.Linear(4, 4), nn.Linear(4, 4)
    second.weight = first.weight
    return nn.Sequential(first, nn.ReLU(), second)


def frozen() -> nn.Module:
    module = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 3))
    module[0].weight.requires_grad_(False)
    return module


class Halved(nn.Module):
    def forward(self, weight: torch.Tensor) -> torch.Tensor:
        return weight / 2


def reparametrised() -> nn.Module:
    module = nn.Sequential(nn.Linear(4, 3))
    nn.utils.parametrize.register_parametrization(module[0], "weight", Halved())
    return module


def hooked() -> nn.Module:
    module = nn.Sequential(nn.Linear(4, 3))
    module.register_forward_hook(lambda part, given, output: 2 * output)
    return module


OTHERS = {
    "another forward": nn.Sequential(Doubled(4, 3)),
    "tied": tied(),
    "frozen": frozen(),
    "hooked": hooked(),
    "reparametrised": reparametrised(),
    "ends in ReLU": nn.Sequential(nn.Linear(4, 3), nn.ReLU()),
    "ReLU first": nn.Sequential(nn.ReLU(), nn.Linear(4, 3)),
    "tanh": nn.Sequential(nn.Linear(4, 3), nn.Tanh(), nn.Linear(3, 3)),
}


@pytest.mark.parametrize("module", OTHERS.values(), ids=OTHERS)
def test_models_that_only_look_as_if_they_were_known(module: nn.Module) -> None:
    pool = Pool(torch.randn(5, 4, generator=torch.Generator().manual_seed(0)), torch.arange(5) % 3)
    whole = Training(Model.of(module, classes=3), pool, np.array([0, 3, 5]), 0)
    assert layers_of(whole) is None
    rows = np.array([0, 1])
    work = Batched(whole, 1).work(whole.clients(LOCALS["steps"], rows, 0))
    x = whole.layout.flatten(whole.model.module).repeat(2, 1)
    task = whole.clients(LOCALS["steps"], rows, 0)
    torch.testing.assert_close(work.gradient(x, 0), Reference(whole).work(task).gradient(x, 0))
