"""A run that stops and goes on from its checkpoint is the run that never stopped, bit by bit."""

from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.conformance.cases import CASES, ROUNDS, classification, logistic

from turnout import checkpoint
from turnout.simulator import Progress, Simulation, advance, begin, restore

everywhere = pytest.mark.parametrize("case", CASES)


def simulation(case: str) -> Simulation:
    return Simulation.of(CASES[case], classification(), logistic(), dtype=torch.float64)


def play(simulation: Simulation, progress: Progress, rounds: int) -> Progress:
    for _ in range(rounds):
        advance(simulation, progress)
    return progress


def leaves(tree: Any, name: str = "") -> dict[str, Any]:
    """Every value in a tree of dicts and dataclasses, by its path."""
    if is_dataclass(tree):
        tree = {field.name: getattr(tree, field.name) for field in fields(tree)}
    if not isinstance(tree, dict):
        return {name: tree}
    found: dict[str, Any] = {}
    for key, value in tree.items():
        found |= leaves(value, f"{name}/{key}")
    return found


def same(a: Progress, b: Progress) -> None:
    first, second = leaves(a), leaves(b)
    assert first.keys() == second.keys()
    for name, value in first.items():
        other = second[name]
        assert type(value) is type(other), name
        if isinstance(value, torch.Tensor):
            assert torch.equal(value, other), name
        else:
            np.testing.assert_array_equal(value, other, err_msg=name)


@everywhere
def test_all_that_changes_is_tensors_arrays_and_plain_numbers(case) -> None:
    progress = play(simulation(case), begin(simulation(case)), 5)
    found = leaves(progress)
    assert isinstance(found["/server/x"], torch.Tensor)
    for name, value in found.items():
        plain = (torch.Tensor, np.ndarray, int, float, type(None))
        assert isinstance(value, plain), f"{name} is a {type(value).__name__}"


@everywhere
@pytest.mark.parametrize("stop", [1, 6])
def test_a_resumed_run_is_the_whole_run(case, stop, tmp_path: Path) -> None:
    whole = simulation(case)
    expected = play(whole, begin(whole), ROUNDS)
    first = simulation(case)
    half = play(first, begin(first), stop)
    checkpoint.save(tmp_path, stop, half, delivered=half.delivered)
    found = checkpoint.load(tmp_path)
    assert found is not None
    second = simulation(case)
    same(play(second, restore(second, found.tree), ROUNDS - stop), expected)


@pytest.mark.parametrize("case", ["scaffold", "mifa, client-held"])
def test_the_last_test_notices_when_what_clients_keep_is_lost(case) -> None:
    """Known defect elsewhere: a restore that loses control variates."""
    whole, halted = simulation(case), simulation(case)
    expected = play(whole, begin(whole), ROUNDS)
    progress = play(halted, begin(halted), 6)
    assert progress.kept
    for held in progress.kept.values():
        assert bool((held != 0).any())
        held.zero_()
    assert not torch.equal(play(halted, progress, ROUNDS - 6).server.x, expected.server.x)
