"""Every algorithm on every engine under every driver, on one trace that has all the trouble.

The trace has empty rounds, lost updates, a client that never comes and one that comes once.
"""

from functools import cache

import numpy as np
import pytest
import torch
from tests.conformance.cases import (
    ASKED,
    CASES,
    DELIVERED,
    DRIVERS,
    ENGINES,
    ROUNDS,
    classification,
    logistic,
)
from tests.conformance.worlds import attendance

from turnout.algorithms import RECIPES

everywhere = pytest.mark.parametrize("case", CASES)
on_every_engine = pytest.mark.parametrize("engine", ENGINES)
under_every_driver = pytest.mark.parametrize("driver", DRIVERS)


def models(driver: str, engine: str, case: str, world=None, rounds=ROUNDS, **more) -> torch.Tensor:
    world = classification() if world is None else world
    run = DRIVERS[driver](CASES[case], world, logistic(), rounds, engine=engine, **more)
    return torch.stack(run)


@cache
def usual(driver: str, engine: str, case: str) -> torch.Tensor:
    return models(driver, engine, case)


def test_every_recipe_is_here() -> None:
    missing = set(RECIPES) - {name.split(",")[0] for name in CASES}
    assert not missing, (
        f"{', '.join(sorted(missing))}: add a line to CASES in tests/conformance/cases.py, so that "
        "the conformance suite runs it"
    )


def test_the_cases_are_what_they_are_called() -> None:
    assert {name.split(",")[0] == algorithm.name for name, algorithm in CASES.items()} == {True}


@everywhere
@on_every_engine
@under_every_driver
def test_finite_in_double_precision_and_of_some_effect(driver, engine, case) -> None:
    run = usual(driver, engine, case)
    assert run.dtype == torch.float64
    assert bool(torch.isfinite(run).all())
    waits_for_ever = case in ("mifa, wait", "wait_minibatch", "wait_full")  # client 3 never comes
    assert bool((run[-1] == run[0]).all()) == waits_for_ever


@everywhere
@on_every_engine
@under_every_driver
def test_the_same_seed_gives_the_same_bits(driver, engine, case) -> None:
    assert torch.equal(models(driver, engine, case), usual(driver, engine, case))


@on_every_engine
@under_every_driver
def test_another_seed_gives_another_run(driver, engine) -> None:
    assert not torch.equal(
        models(driver, engine, "fedavg", seed=1), usual(driver, engine, "fedavg")
    )


@everywhere
@on_every_engine
@under_every_driver
def test_lost_updates_change_nothing(driver, engine, case) -> None:
    """Neither the server nor what clients keep: an update that never arrived never happened."""
    if CASES[case].selection is not None:
        pytest.skip("whoever is there may be chosen, and then another is not")
    lossy = models(driver, engine, case, classification(asked=ASKED))
    assert torch.equal(lossy, usual(driver, engine, case))


@everywhere
@on_every_engine
@under_every_driver
def test_agrees_with_the_reference(driver, engine, case) -> None:
    run, reference = usual(driver, engine, case), usual("simulator", "reference", case)
    torch.testing.assert_close(run, reference, rtol=1e-9, atol=1e-11)


@everywhere
@on_every_engine
@under_every_driver
def test_single_precision_is_close_to_double(driver, engine, case) -> None:
    single = models(driver, engine, case, dtype=torch.float32)
    assert single.dtype == torch.float32
    torch.testing.assert_close(
        single.double(), usual(driver, engine, case), rtol=1e-3, atol=1e-4, check_dtype=True
    )


@everywhere
@on_every_engine
@under_every_driver
def test_nobody_ever_comes(driver, engine, case) -> None:
    """Without clients only the server's own data can move the model, unless they only judge."""
    run = models(driver, engine, case, classification(np.zeros_like(DELIVERED)))
    moved = bool((run[-1] != run[0]).any())
    assert moved == (CASES[case].assisted and CASES[case].judge is None)


@everywhere
@on_every_engine
@under_every_driver
def test_everybody_always_comes(driver, engine, case) -> None:
    run = models(driver, engine, case, classification(np.ones_like(DELIVERED)), rounds=3)
    assert bool(torch.isfinite(run).all())
    assert not torch.equal(run[-1], run[0])


def test_the_trace_is_the_one_that_the_suite_promises() -> None:
    mask = attendance(DELIVERED, ASKED).mask(ROUNDS)
    asked = attendance(DELIVERED, ASKED).mask(ROUNDS, cohort=True)
    assert mask[:, 0].sum() == 8
    assert mask[:, 3].sum() == 0
    assert mask[:, 4].sum() == 1
    assert (mask.sum(1) == 0).tolist() == [t in (3, 7) for t in range(ROUNDS)]
    assert asked[3].all()  # computed, and all of it lost
    assert not asked[7].any()  # nobody was asked
    assert asked[:, 3].any()
