"""The threaded engine: the reference's numbers, the same bits however many workers."""

import numpy as np
import pytest
import torch
from tests.engine.cohorts import KINDS, LOCALS, ROWS, algorithm, broadcast_of, training, updates
from tests.engine.test_batched import agree

from turnout.engine.crew import in_order
from turnout.engine.reference import Reference
from turnout.engine.threaded import Threaded


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("local", LOCALS)
def test_as_the_reference(kind: str, local: str) -> None:
    whole = training(kind)
    found = updates(Threaded(whole, workers=2), whole, LOCALS[local])
    agree(found, updates(Reference(whole), whole, LOCALS[local]))


@pytest.mark.parametrize("kind", KINDS)
def test_in_single_precision(kind: str) -> None:
    whole = training(kind, torch.float32)
    found = updates(Threaded(whole, workers=2), whole, LOCALS["epochs"])
    agree(found, updates(Reference(whole), whole, LOCALS["epochs"]))


@pytest.mark.parametrize("kind", ["cnn, dropout", "tanh"])
def test_the_same_bits_in_the_same_order(kind: str) -> None:
    whole = training(kind, torch.float32)
    one, *others = (updates(Threaded(whole, n), whole, LOCALS["epochs"]) for n in (1, 2, 5))
    assert list(one) == ROWS.tolist()
    for other in others:
        assert list(other) == list(one)
        assert all(torch.equal(other[row], vector) for row, vector in one.items())


def test_copies_follow_the_vector_and_leave_the_model_alone() -> None:
    whole = training("cnn, dropout")
    before = whole.layout.flatten(whole.model.module)
    engine = Threaded(whole, workers=2)
    task = whole.clients(LOCALS["steps"], ROWS, 0)
    work, expected = engine.work(task), Reference(whole).work(task)
    for shift in (0.0, 0.1, 0.0):  # other memory each time, at times that of before
        x = before.repeat(len(ROWS), 1) + shift
        torch.testing.assert_close(work.gradient(x, 0), expected.gradient(x, 0))
        x += 0.2
        torch.testing.assert_close(work.gradient(x, 1), expected.gradient(x, 1))
    assert torch.equal(whole.layout.flatten(whole.model.module), before)


def test_an_error_of_a_client_reaches_the_caller() -> None:
    whole, local = training("tanh"), LOCALS["steps"]
    called = []

    def recall(rows: np.ndarray) -> dict:
        called.append(int(rows[0]))
        if rows[0] == ROWS[1]:
            raise RuntimeError("client 2 is on fire")
        return {}

    sent = broadcast_of(whole, local)
    blocks = Threaded(whole, workers=2).train(algorithm(local), sent, ROWS, recall)
    assert next(blocks).rows.tolist() == [ROWS[0]]
    with pytest.raises(RuntimeError, match="on fire"):
        next(blocks)


def test_bfloat16_is_near_and_only_inside() -> None:
    whole, local = training("cnn, dropout", torch.float32), LOCALS["steps"]
    full = updates(Threaded(whole, 1), whole, local)
    half = updates(Threaded(whole, 1, "bf16"), whole, local)
    for row, vector in full.items():
        assert half[row].dtype == torch.float32
        gap = (half[row] - vector).norm() / vector.norm()
        assert 1e-5 < gap < 0.1


@pytest.mark.parametrize("workers", [1, 2, 4])
def test_results_come_in_the_order_of_the_jobs(workers: int) -> None:
    begun = []

    def job(n: int):
        def run() -> int:
            begun.append(n)
            return n

        return run

    results = in_order((job(n) for n in range(20)), workers)
    assert next(results) == 0
    # Results wait in memory, so workers do not run far ahead of whoever takes them.
    assert len(begun) <= workers + 2
    assert list(results) == list(range(1, 20))


def test_the_callers_threads_stay_as_they_are() -> None:
    before = torch.get_num_threads()
    inside = list(in_order([torch.get_num_threads] * 6, workers=3))
    assert inside == [1] * 6
    assert torch.get_num_threads() == before
