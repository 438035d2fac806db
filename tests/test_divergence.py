"""What is no longer finite is noticed in the round in which that happens, wherever it hides."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as some
from tests.conformance.cases import CASES, DELIVERED, classification, logistic
from tests.conformance.test_resume import leaves

from turnout import round as protocol
from turnout.algorithms import known, mifa, wait_minibatch
from turnout.parts.local import Local
from turnout.simulator import DivergenceError, Simulation, advance, begin
from turnout.state import unsound


def simulation(algorithm, delivered=DELIVERED) -> Simulation:
    return Simulation.of(algorithm, classification(delivered), logistic(), dtype=torch.float32)


def everything_finite(progress) -> bool:
    """Of all that changes while a federation runs, tables and histories included."""
    for value in leaves(progress).values():
        if isinstance(value, torch.Tensor) and not bool(torch.isfinite(value).all()):
            return False
        if isinstance(value, np.ndarray) and not np.isfinite(value).all():
            return False
        if isinstance(value, float) and not math.isfinite(value):
            return False
    return True


@settings(max_examples=60)
@given(
    case=some.sampled_from(sorted(CASES)),
    scale=some.sampled_from([1.0, 1e6, 1e12, 1e18, 1e25, 1e38]),
    turn=some.integers(0, 5),
    poison=some.sampled_from([None, math.nan, math.inf]),
)
def test_after_a_round_that_was_played_all_is_finite(case, scale, turn, poison) -> None:
    """A model far out, or data with a hole in them: memory and weights never go bad in silence."""
    simulated = simulation(CASES[case])
    progress = begin(simulated)
    if poison is not None:
        simulated.training.pool.inputs[turn, 0] = poison
    for number in range(len(DELIVERED)):
        if number == turn:
            progress.server.x = progress.server.x + scale
        said = None
        try:
            advance(simulated, progress)
        except DivergenceError as error:
            said = error
        if said is not None:
            assert said.round == number
            return
        assert everything_finite(progress), f"round {number} was played"


@pytest.mark.parametrize("method", [wait_minibatch, lambda local: mifa("wait", local=local)])
def test_a_model_that_is_held_still_does_not_hide_it(method) -> None:
    """Client 3 never comes: neither of the two ever moves."""
    simulated = simulation(method(local=Local(lr=math.inf, steps=1)))
    progress = begin(simulated)
    with pytest.raises(DivergenceError, match=r"in round 0: (the sum of updates|memory) is no"):
        advance(simulated, progress)
    assert bool(torch.isfinite(progress.server.x).all())


def test_a_weight_that_is_not_finite_names_its_client() -> None:
    rates = [1.0, 1.0, 5e-324, 1.0, 1.0, 1.0]  # 1/p overflows
    simulated = simulation(known(rates, local=Local(lr=0.1, steps=1)))
    progress = begin(simulated)
    advance(simulated, progress)
    with pytest.raises(DivergenceError, match="in round 1: the weight of client 2 is no longer"):
        advance(simulated, progress)
    assert everything_finite(progress)


def test_large_numbers_are_finite_numbers() -> None:
    algorithm = CASES["fedavg"]
    state = protocol.start(algorithm, torch.full((9,), 3e38), clients=2)
    assert not math.isfinite(float(state.x.sum()))
    assert unsound(state) is None
