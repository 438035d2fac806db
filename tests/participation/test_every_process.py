"""What holds for every participation process, one by one and composed."""

import inspect
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given as drawn
from hypothesis import settings
from hypothesis import strategies as st
from tests.participation.examples import EVERY, FIXED, SEEDED

from turnout.participation import PROCESSES, Participation, State

ROUNDS = 36


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("participation")


def states(process: Participation) -> list[State]:
    """The state before each round."""
    found = [process.init()]
    for t in range(ROUNDS - 1):
        found.append(process.step(found[-1], t)[1])
    return found


def copied(state: State) -> State:
    return {name: np.array(value, copy=True) for name, value in state.items()}


def same(one: State, other: State) -> bool:
    return one.keys() == other.keys() and all(
        np.array_equal(one[name], other[name]) and one[name].dtype == other[name].dtype
        for name in one
    )


def test_every_registered_process_has_an_example() -> None:
    assert {name.split()[0] for name in EVERY} == set(PROCESSES)


@pytest.mark.parametrize("name", PROCESSES)
def test_constructors_explain_themselves(name: str) -> None:
    constructor = PROCESSES[name]
    assert constructor.__name__ == name
    first = (constructor.__doc__ or "").splitlines()[0]
    assert first.endswith(".")
    assert 20 < len(first) <= 95
    parameters = inspect.signature(constructor).parameters.values()
    assert all(parameter.annotation is not inspect.Parameter.empty for parameter in parameters)


@pytest.mark.parametrize("name", EVERY)
@settings(max_examples=15)
@drawn(seed=st.integers(0, 2**40))
def test_rows_are_sorted_and_the_delivered_were_asked(name: str, folder: Path, seed: int) -> None:
    process = EVERY[name](folder, seed)
    for cohort, delivered, began in process.rounds(ROUNDS):
        assert (began is not None) == process.asynchronous
        for rows in (cohort, delivered, cohort if began is None else began):
            assert rows.dtype == np.int64
            assert rows.ndim == 1
            assert (np.diff(rows) > 0).all()
            assert not len(rows) or (rows[0] >= 0 and rows[-1] < process.clients)
        assert set(delivered.tolist()) <= set(cohort.tolist())


@pytest.mark.parametrize("name", EVERY)
@settings(max_examples=15)
@drawn(seed=st.integers(0, 2**40), data=st.data())
def test_step_is_pure_and_replays_from_any_state(
    name: str, folder: Path, seed: int, data: st.DataObject
) -> None:
    process = EVERY[name](folder, seed)
    before = states(process)
    mask = process.mask(ROUNDS)
    cohorts = process.mask(ROUNDS, cohort=True)
    for t in data.draw(st.lists(st.integers(0, ROUNDS - 2), min_size=1, max_size=8)):
        state = copied(before[t])
        came, then = process.step(before[t], t)
        assert same(before[t], state), "step changed the state that it was given"
        assert same(then, before[t + 1])
        assert came.delivered.tolist() == np.flatnonzero(mask[t]).tolist()
        assert came.cohort.tolist() == np.flatnonzero(cohorts[t]).tolist()
        # Nor may a caller that writes into what it got change what others will get.
        came.cohort[:] = -1
        came.delivered[:] = -1
        again, _ = process.step(before[t], t)
        assert again.delivered.tolist() == np.flatnonzero(mask[t]).tolist()
        assert same(before[t + 1], states(process)[t + 1])


@pytest.mark.parametrize("name", EVERY)
def test_the_same_mask_from_an_equal_process(name: str, folder: Path) -> None:
    first = EVERY[name](folder, 5).mask(ROUNDS)
    assert first.shape[0] == ROUNDS
    assert np.array_equal(first, EVERY[name](folder, 5).mask(ROUNDS))


@pytest.mark.parametrize("name", SEEDED)
def test_another_mask_from_another_seed(name: str, folder: Path) -> None:
    masks = [SEEDED[name](folder, seed).mask(ROUNDS).tobytes() for seed in range(3)]
    assert len(set(masks)) == 3


@pytest.mark.parametrize("name", EVERY)
def test_a_checkpoint_can_hold_the_state(name: str, folder: Path, tmp_path: Path) -> None:
    process = EVERY[name](folder, 3)
    before = states(process)
    half = ROUNDS // 2
    np.savez(tmp_path / "state.npz", **before[half])
    with np.load(tmp_path / "state.npz", allow_pickle=False) as stored:
        state = dict(stored)
    mask = process.mask(ROUNDS)
    for t in range(half, ROUNDS):
        came, state = process.step(state, t)
        assert came.delivered.tolist() == np.flatnonzero(mask[t]).tolist()


@pytest.mark.parametrize("name", EVERY)
def test_rates_are_what_comes_out(name: str, folder: Path) -> None:
    rounds = 4000 if name != "given (array)" else 40
    process = EVERY[name](folder, 11)
    if process.rates is None:
        assert name.split()[0] in ("step_drift", "sampled", "excluded")
        return
    assert process.rates.shape == (process.clients,)
    seen = process.mask(rounds).mean(axis=0)
    # Spells lengthen a Markov chain's memory; the coarsest case here has an inflation below 40.
    spread = np.sqrt(40 * process.rates * (1 - process.rates) / rounds)
    slack = 1e-3 if name in FIXED or name == "cyclic" else 2e-3
    assert (np.abs(seen - process.rates) <= 4 * spread + slack).all()


@pytest.mark.parametrize("name", EVERY)
def test_what_is_said_to_repeat_does(name: str, folder: Path) -> None:
    process = EVERY[name](folder, 2)
    if process.period is not None:
        mask = process.mask(2 * process.period)
        assert np.array_equal(mask[: process.period], mask[process.period :])
        assert mask[: process.period].mean(axis=0) == pytest.approx(process.rates, abs=1e-12)
