"""The pure functions alone: blocks of any size and in any order, and nothing shared by accident.

No engine and no driver: clients are quadratics in closed form, and the loop is written out here.
"""

from copy import deepcopy
from dataclasses import dataclass

import numpy as np
import pytest
import torch
from tests.conformance.cases import CASES, DELIVERED, ROUNDS
from tests.conformance.test_resume import leaves

from turnout.algorithm import Algorithm
from turnout.parts.local import Tensors
from turnout.round import (
    absorb,
    announce,
    asks_clients,
    client_step,
    close,
    nothing_kept,
    server_step,
    start,
)
from turnout.state import ServerState

everywhere = pytest.mark.parametrize("case", CASES)

CLIENTS, DIM = DELIVERED.shape[1], 3
CENTRES = torch.from_numpy(np.random.default_rng(0).normal(size=(CLIENTS, DIM)))
STEPS = np.array([3, 1, 2, 2, 1, 3])
SHARES = np.array([0.3, 0.1, 0.2, 0.1, 0.1, 0.2])


@dataclass(frozen=True)
class Pull:
    """Gradients x − z, with a different z in each step."""

    centres: torch.Tensor
    steps: list[int]

    def gradient(self, x: torch.Tensor, step: int) -> torch.Tensor:
        return x - self.centres[: len(x)] * (1 + step / 4)


def work(rows: np.ndarray) -> Pull:
    return Pull(CENTRES[rows], STEPS[rows].tolist())


def federate(case: str, blocks=lambda t, rows: [rows], shares=SHARES) -> ServerState:
    """The trace of the conformance suite; `blocks` cuts each round's clients into blocks."""
    algorithm = CASES[case]
    when = algorithm.assistance.when if algorithm.assistance else None
    state = start(algorithm, torch.ones(DIM, dtype=torch.float64), CLIENTS, shares)
    kept = nothing_kept(algorithm, CLIENTS, state.x)
    for t, present in enumerate(DELIVERED):
        if not asks_clients(algorithm, 0, t):
            state = server_step(algorithm, state, Pull(CENTRES[:1], [2]))
            continue
        if when == "beside":
            state = server_step(algorithm, state, Pull(CENTRES[:1], [2]))
        rows = np.flatnonzero(present)
        rows = rows[np.argsort(-STEPS[rows], kind="stable")]  # those with the most steps first
        broadcast = announce(algorithm, state, rows)
        uploads = {}
        for place, row in enumerate(rows):
            alone = rows[place : place + 1]
            own = {name: held[alone] for name, held in kept.items()}
            uploads[row], after = client_step(algorithm, broadcast.part([place]), work(alone), own)
            for name, held in kept.items():
                held[alone] = after[name]
        for block in blocks(t, rows):
            parts = [uploads[row] for row in block]
            together = (
                type(parts[0])(
                    torch.cat([part.update for part in parts]),
                    np.concatenate([part.weights for part in parts]),
                    {n: torch.cat([p.changes[n] for p in parts]) for n in parts[0].changes},
                )
                if parts
                else None
            )
            if together is not None:
                state = absorb(algorithm, state, block, together)
        state = close(algorithm, state)
        if when == "after":
            state = server_step(algorithm, state, Pull(CENTRES[:1], [2]), accuracy=0.25)
    return state


def everybodys(algorithm: Algorithm, state: ServerState) -> Tensors:
    """What all clients keep, all ones."""
    return {name: held + 1 for name, held in nothing_kept(algorithm, CLIENTS, state.x).items()}


def close_to(state: ServerState, other: ServerState) -> None:
    found, expected = leaves(state), leaves(other)
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        if value is None:
            assert found[name] is None
        else:
            np.testing.assert_allclose(found[name], value, rtol=1e-11, atol=1e-12, err_msg=name)


@everywhere
def test_one_block_or_one_client_at_a_time(case) -> None:
    one_by_one = federate(case, lambda t, rows: [rows[k : k + 1] for k in range(len(rows))])
    close_to(one_by_one, federate(case))


@everywhere
@pytest.mark.parametrize("seed", range(3))
def test_blocks_of_any_size_in_any_order(case, seed) -> None:
    def cut(t: int, rows: np.ndarray) -> list[np.ndarray]:
        draw = np.random.default_rng([seed, t])
        mixed = draw.permutation(rows)
        return np.split(mixed, np.sort(draw.integers(len(rows) + 1, size=2)))

    close_to(federate(case, cut), federate(case))


@everywhere
def test_training_in_one_block_is_training_alone(case) -> None:
    """Rows of a block do not touch each other, though some have more steps than others."""
    algorithm = CASES[case]
    state = federate(case)
    rows = np.argsort(-STEPS, kind="stable")
    draw = torch.Generator().manual_seed(0)
    own = {
        name: held.normal_(generator=draw) for name, held in everybodys(algorithm, state).items()
    }
    broadcast = announce(algorithm, state, rows)
    block, after = client_step(algorithm, broadcast, work(rows), own)
    for place in range(CLIENTS):
        alone, kept = client_step(
            algorithm,
            broadcast.part(slice(place, place + 1)),
            work(rows[place : place + 1]),
            {name: held[place : place + 1] for name, held in own.items()},
        )
        torch.testing.assert_close(alone.update[0], block.update[place], rtol=1e-12, atol=1e-13)
        for name in kept:
            torch.testing.assert_close(kept[name][0], after[name][place], rtol=1e-12, atol=1e-13)
        for name in alone.changes:
            torch.testing.assert_close(alone.changes[name][0], block.changes[name][place])


@everywhere
def test_a_client_step_leaves_what_it_was_given_alone(case) -> None:
    algorithm = CASES[case]
    state = federate(case)
    rows = np.argsort(-STEPS, kind="stable")
    own = everybodys(algorithm, state)
    broadcast = announce(algorithm, state, rows)
    before = deepcopy((state, broadcast, own))
    upload, kept = client_step(algorithm, broadcast, work(rows), own)
    close_to(state, before[0])
    assert torch.equal(broadcast.x, before[1].x)
    assert all(torch.equal(broadcast.means[n], before[1].means[n]) for n in broadcast.means)
    assert all(torch.equal(own[n], before[2][n]) for n in own)
    # And what comes out shares no memory: to change one is not to change the other.
    names = ["update", *upload.changes, *kept]
    tensors = [upload.update, *upload.changes.values(), *kept.values(), broadcast.x]
    places = [t.untyped_storage().data_ptr() for t in tensors]
    passed_on = {place for t in own.values() if (place := t.untyped_storage().data_ptr())}
    fresh = [place for place in places if place not in passed_on]
    assert len(set(fresh)) == len(fresh), names


@everywhere
def test_what_was_sent_stays_as_it_was_sent(case) -> None:
    """A broadcast or an upload that somebody still holds does not change with the server."""
    algorithm = CASES[case]
    state = federate(case)
    rows = np.arange(CLIENTS)[np.argsort(-STEPS, kind="stable")]
    own = everybodys(algorithm, state)
    broadcast = announce(algorithm, state, rows)
    upload, _ = client_step(algorithm, broadcast, work(rows), own)
    sent = deepcopy((broadcast, upload))
    for _ in range(2):
        state = close(algorithm, absorb(algorithm, state, rows, upload))
    for now, then in zip((broadcast, upload), sent, strict=True):
        for field in now._fields:
            for name, value in leaves(getattr(then, field), field).items():
                np.testing.assert_array_equal(leaves(getattr(now, field), field)[name], value)


def test_the_loop_here_runs_all_rounds() -> None:
    assert federate("fedavg").round == ROUNDS
    assert federate("safari").round == ROUNDS
    assert federate("safari").client_round < ROUNDS
