"""Which engine is chosen, on what grounds, and that a trial leaves no trace."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from tests.engine.cohorts import KINDS, LOCALS, OFFSETS, ROWS, algorithm, training
from torch import Tensor, nn

from turnout.algorithms import fedavg, safari
from turnout.data.pool import Partition, Pool
from turnout.engine import Choice, Outlook, choose_engine, pick, select
from turnout.engine.batched import Batched
from turnout.engine.contract import Training
from turnout.engine.reference import Reference
from turnout.engine.threaded import Threaded
from turnout.errors import InputError
from turnout.models import Model
from turnout.participation import bernoulli
from turnout.runs import simulate
from turnout.simulator import Simulation
from turnout.world import World

OUTLOOK = Outlook(algorithm(LOCALS["epochs"]), 1000, ROWS)
SUITED = {kind: "threaded" if kind.startswith("cnn") else "batched" for kind in KINDS}


@pytest.mark.parametrize(("kind", "name"), SUITED.items())
def test_by_the_kind_of_model(kind: str, name: str) -> None:
    chosen = pick("auto", training(kind))
    assert chosen.name == name == type(chosen.engine).__name__.lower()
    assert chosen.why


class Decided(nn.Linear):
    """A branch that depends on values: vmap cannot follow it."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x) if x.sum() > 0 else -super().forward(x)


def test_a_model_that_vmap_does_not_take() -> None:
    pool = Pool(torch.ones(4, 3), torch.arange(4) % 2)
    whole = Training(Model.of(Decided(3, 2), classes=2), pool, np.array([0, 2, 4]), 0)
    chosen = pick("auto", whole)
    assert chosen.name == "threaded"
    assert "vmap" in chosen.why


def test_by_name() -> None:
    whole = training("logistic")
    assert pick("threaded", whole) == Choice(Threaded(whole), "threaded", "asked for")
    assert isinstance(choose_engine("reference", whole), Reference)
    compiled = choose_engine("compiled", whole)
    assert isinstance(compiled, Batched)
    assert compiled.compiled
    with pytest.raises(InputError, match="engine"):
        pick("fast", whole)


def test_bfloat16_is_the_threaded_engines() -> None:
    whole = training("logistic", torch.float32)
    for name in ("auto", "threaded"):
        assert pick(name, whole, precision="bf16").engine == Threaded(whole, precision="bf16")
    with pytest.raises(InputError, match="bf16"):
        pick("batched", whole, precision="bf16")
    with pytest.raises(InputError, match="precision"):
        pick("auto", whole, precision="half")


def clocked(monkeypatch, seconds: dict[str, float]) -> list[str]:
    """Trials take so many seconds a round; who was tried."""
    tried = []

    def trial(engine, whole, outlook) -> select._Trial:
        name = "compiled" if getattr(engine, "compiled", False) else type(engine).__name__.lower()
        tried.append(name)
        a_round = seconds[name]
        return select._Trial(0.0, a_round, outlook.rounds * a_round)

    monkeypatch.setattr(select, "_try", trial)
    return tried


def test_a_long_run_takes_the_fastest(monkeypatch) -> None:
    tried = clocked(monkeypatch, {"batched": 1.0, "threaded": 0.5})
    chosen = pick("auto", training("logistic"), OUTLOOK)
    assert tried == ["batched", "threaded"]
    assert chosen.name == "threaded"
    assert isinstance(chosen.engine, Threaded)
    assert chosen.why == "measured, a round's training: batched 1e+03 ms, threaded 500 ms"


def test_a_close_race_goes_to_the_kind_of_model(monkeypatch) -> None:
    clocked(monkeypatch, {"batched": 1.0, "threaded": 0.9})
    assert pick("auto", training("logistic"), OUTLOOK).name == "batched"


def test_a_short_run_tries_nothing_else(monkeypatch) -> None:
    tried = clocked(monkeypatch, {"batched": 0.01, "threaded": 0.001})
    chosen = pick("auto", training("logistic"), OUTLOOK)
    assert chosen.name == "batched"
    assert "short" in chosen.why
    pick("auto", training("logistic"), replace(OUTLOOK, rounds=10))
    assert tried == ["batched"]


def test_compiling_is_tried_where_it_can_pay(monkeypatch) -> None:
    monkeypatch.setattr(select.shutil, "which", lambda name: name)
    tried = clocked(monkeypatch, {"batched": 1.0, "threaded": 2.0, "compiled": 0.3})
    assert pick("auto", training("tanh"), OUTLOOK).name == "compiled"
    assert pick("auto", training("logistic"), OUTLOOK).name == "batched"  # by hand is better
    assert tried.count("compiled") == 1


def test_an_engine_that_fails_is_not_chosen(monkeypatch) -> None:
    clocked(monkeypatch, {"batched": 1.0})  # a KeyError for any other
    chosen = pick("auto", training("logistic"), OUTLOOK)
    assert chosen.name == "batched"


@pytest.mark.parametrize("kind", ["cnn, dropout", "deep, dropout", "tanh"])
@pytest.mark.parametrize("local", ["epochs", "control variates"])
def test_a_trial_measures_and_changes_nothing(kind: str, local: str) -> None:
    whole, outlook = training(kind), replace(OUTLOOK, algorithm=algorithm(LOCALS[local]))
    before = whole.layout.flatten(whole.model.module)
    trial = select._try(pick("auto", whole).engine, whole, outlook)
    assert trial.a_round > 0
    assert trial.total == trial.before + outlook.rounds * trial.a_round
    assert torch.equal(whole.layout.flatten(whole.model.module), before)


def world() -> World:
    whole = training("logistic", torch.float32)
    sizes = np.diff(OFFSETS)
    owners = Partition.of(np.repeat(np.arange(len(sizes)), sizes), len(sizes))
    return World.build(
        whole.pool, owners, whole.pool, bernoulli(np.full(len(sizes), 0.5)), whole.pool
    )


def test_a_simulation_tells_what_it_expects_and_what_was_chosen(monkeypatch) -> None:
    seen = []

    def trial(engine, whole, outlook) -> select._Trial:
        seen.append(outlook)
        return select._Trial(0.0, 1.0, 0.0)

    monkeypatch.setattr(select, "_try", trial)
    model = Model.of("logistic", (1, 8, 8), 3)
    local = LOCALS["steps"]
    run = simulate(fedavg(local=local), world(), model, 30, evaluate_every=30)
    assert run.engine.startswith("batched: ")
    assert [outlook.rounds for outlook in seen] == [30]
    assert 0 < len(seen[0].rows) <= 5
    inner = fedavg(local=local)
    Simulation.of(safari(q=0.4, inner=inner), world(), model, rounds=100)
    assert seen[1].rounds == 40
    Simulation.of(inner, world(), model)  # says nothing about rounds
    assert len(seen) == 2
