"""Several runs at once: one for each algorithm, world and seed, and each what it is alone."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import torch
from tests.conformance.cases import DELIVERED, classification, logistic

from turnout import algorithms, participation, simulate, simulate_many, together
from turnout.algorithm import Algorithm
from turnout.algorithms.scaffold import control_variates
from turnout.errors import InputError
from turnout.parts.local import Local, LocalRule, sgd
from turnout.runs import Run
from turnout.world import World

ROUNDS = 8


def fedau(lr: float = 0.3, **more: object) -> Algorithm:
    return algorithms.fedau(local=Local(lr, **{"steps": 3, "batch_size": 2, **more}))


def world(seed: int = 0) -> World:
    return classification(np.roll(DELIVERED, seed, 0), seed=seed)


def many(some: object, worlds: object, seeds: object) -> list[Run]:
    return simulate_many(some, worlds, logistic(), ROUNDS, seeds=seeds, dtype=torch.float64)


def one(algorithm: Algorithm, world: World, seed: int) -> Run:
    return simulate(algorithm, world, logistic(), ROUNDS, seed=seed, dtype=torch.float64)


def company(runs: list[Run]) -> list[str]:
    return [run.engine.partition("; ")[2] for run in runs]


CASES: dict[str, Callable[[], tuple[list[Algorithm], list[World], list[int]]]] = {
    "seeds": lambda: ([fedau()] * 3, [world()] * 3, [0, 1, 2]),
    "worlds": lambda: ([fedau()] * 3, [world(s) for s in range(3)], [4] * 3),
    "step sizes": lambda: ([fedau(lr) for lr in (0.1, 0.3, 1.0)], [world()] * 3, [4] * 3),
    "all of it": lambda: (
        [fedau(lr) for lr in (0.1, 0.3, 1.0)],
        [world(s) for s in range(3)],
        [5, 6, 7],
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_each_is_what_it_is_alone(case: str) -> None:
    setups = CASES[case]()
    runs = many(*setups)
    assert company(runs) == ["3 of them together"] * 3
    for run, setup in zip(runs, zip(*setups, strict=True), strict=True):
        alone = one(*setup)
        np.testing.assert_allclose(run.x, alone.x, rtol=1e-9, atol=1e-11)
        np.testing.assert_allclose(
            run.module.state_dict()["1.weight"].flatten(),
            alone.module.state_dict()["1.weight"].flatten(),
            rtol=1e-9,
        )
        assert [m["round"] for m in run.history] == [m["round"] for m in alone.history]
        assert [c["delivered"] for c in run.clients] == [c["delivered"] for c in alone.clients]
        np.testing.assert_allclose(run.final("test_loss"), alone.final("test_loss"), rtol=1e-9)


def test_one_of_each_serves_all() -> None:
    runs = many(fedau(), world(), [0, 1])
    assert len(runs) == 2
    assert (runs[0].x != runs[1].x).any()
    assert len(many(fedau(), [world(), world(1), world(2)], 3)) == 3
    assert len(many([fedau(), fedau(1.0)], world(), 3)) == 2
    with pytest.raises(InputError, match="there are 2 seeds; it must be one for all, or one for"):
        many(fedau(), [world(), world(1), world(2)], [0, 1])


def unnamed() -> LocalRule:
    rule = sgd()
    return LocalRule(rule.begin, rule.step)


@pytest.mark.parametrize(
    "other",
    [
        fedau(steps=2),
        fedau(batch_size=3),
        fedau(rule=sgd(momentum=0.5)),
        fedau(rule=control_variates()),
        fedau(rule=unnamed()),
    ],
    ids=["steps", "batches", "momentum", "another rule", "a rule without a name"],
)
def test_who_trains_otherwise_trains_apart(other: Algorithm) -> None:
    runs = many([fedau(), other, fedau()], world(), 0)
    assert company(runs) == ["2 of them together", "", "2 of them together"]
    assert company(many([fedau(rule=unnamed()), fedau(rule=unnamed())], world(), 0)) == ["", ""]
    same = fedau(rule=unnamed())
    assert company(many([same, same], world(), 0)) == ["2 of them together"] * 2


def test_other_methods_with_the_same_local_training_join() -> None:
    """The server's part is each one's own, so that it may be another one's."""
    local = Local(0.3, steps=3, batch_size=2)
    methods = [algorithms.fedau(local=local), algorithms.mifa(local=local)]
    runs = many(methods, world(), [0, 0])
    assert company(runs) == ["2 of them together"] * 2
    for run, method in zip(runs, methods, strict=True):
        np.testing.assert_allclose(run.x, one(method, world(), 0).x, rtol=1e-9, atol=1e-11)


def test_what_is_large_plays_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(together, "LIMIT", 1)
    assert company(many(fedau(), world(), [0, 1, 2])) == [""] * 3


def test_rounds_with_more_who_come_than_there_is_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rounds differ in who comes: blocks are filled up to the limit, and the rest trains apart."""
    sizes = []
    real = together.Joint.train
    monkeypatch.setattr(
        together.Joint,
        "train",
        lambda joint, cohorts: sizes.append(len(cohorts)) or real(joint, cohorts),
    )
    monkeypatch.setattr(together, "room", lambda simulation, rounds: 3)
    monkeypatch.setattr(together, "LIMIT", 240)
    runs = many(fedau(), [world(s) for s in range(3)], 0)
    assert set(sizes) == {2, 3}
    assert len(sizes) <= ROUNDS
    for seed, run in enumerate(runs):
        np.testing.assert_allclose(run.x, one(fedau(), world(seed), 0).x, rtol=1e-9, atol=1e-11)


def test_a_mask_need_not_be_longer_than_the_run() -> None:
    short = replace(world(), participation=participation.given(DELIVERED[:2]))
    runs = simulate_many(fedau(), short, logistic(), 2, seeds=[0, 1])
    assert company(runs) == ["2 of them together"] * 2


def test_watch_is_told_which_run_it_is() -> None:
    heard: list[tuple[int, int]] = []
    simulate_many(
        fedau(),
        world(),
        logistic(),
        2,
        seeds=[3, 4],
        watch=lambda place, happened, metrics: heard.append((place, happened.round)),
    )
    assert heard == [(0, 0), (1, 0), (0, 1), (1, 1)]


def test_who_diverges_ends_and_the_others_do_not() -> None:
    runs = many([fedau(0.1), fedau(1e308), fedau(0.2)], world(), 0)
    assert [run.diverged is None for run in runs] == [True, False, True]
    for run, lr in zip(runs[::2], (0.1, 0.2), strict=True):
        np.testing.assert_allclose(run.x, one(fedau(lr), world(), 0).x, rtol=1e-9, atol=1e-11)
