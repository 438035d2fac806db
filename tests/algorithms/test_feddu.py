"""FedDU: by hand on quadratics, by softmax regression in plain numpy, and what it goes by."""

from functools import partial

import numpy as np
import pytest
import torch
from tests.conformance.cases import classification, logistic
from tests.conformance.test_streaming import Pull
from tests.conformance.worlds import HALF, quadratic, walk

from turnout.algorithms import fedavg, feddu
from turnout.errors import InputError
from turnout.parts.local import Local
from turnout.round import absorb, announce, client_step, close, server_step, start
from turnout.simulator import Simulation, advance, begin

LABELS = [[6, 0], [0, 2]]


def one_round(method, came, accuracy, state=None) -> float:
    """Clients at 0 and 4 go half the way from 8, and the server three quarters of it, to 6."""
    x = torch.tensor([8.0], dtype=torch.float64)
    state = start(method, x, 2) if state is None else state
    rows = np.array(came)
    if len(rows):
        work = Pull(torch.tensor([[0.0], [4.0]], dtype=torch.float64)[rows], [1] * len(rows))
        upload, _ = client_step(method, announce(method, state, rows), work, {})
        state = absorb(method, state, rows, upload)
    state = close(method, state)
    own = Pull(torch.full((1, 1), 6.0, dtype=torch.float64), [1])
    return server_step(method, state, own, accuracy).x.item()


def divergence(p, q) -> float:
    p, q = np.array(p) / np.sum(p), np.array(q) / np.sum(q)
    m = (p + q) / 2
    return sum(0.5 * a * np.log(a / b) for w in (p, q) for a, b in zip(w, m, strict=True) if a)


def test_by_hand() -> None:
    method = feddu(LABELS, [5, 5], 1.5, 0.9, 0.2, 1, None, 0.75, fedavg(local=HALF))
    ours, theirs = divergence([6, 0], [6, 2]), divergence([1, 1], [6, 2])
    ratio = 8 * ours / (8 * ours + 6 * theirs)  # 8 of 10 samples are trained on
    # Client 0: 8 → 4; the server would go to 5.5.
    assert one_round(method, [0], 0.25) == pytest.approx(4 + 1.5 * 0.75 * ratio * 1.5, rel=1e-12)
    # All of them: no further from everybody than everybody. 8 → 5, and the server has nothing to add.
    assert one_round(method, [0, 1], 0.25) == 5
    # Nobody: the server's data are all that there is. 8 → 8 − 1.5 · 1.5 · ¾
    assert one_round(method, [], 0.25) == pytest.approx(8 - 1.5 * 1.5 * 0.75, rel=1e-12)
    # A model that is always right needs no help.
    assert one_round(method, [0], 1.0) == 4
    # In round 3 the server counts for 0.9³ of it.
    later = start(method, torch.tensor([8.0], dtype=torch.float64), 2)
    later.round = 3
    assert one_round(method, [], 0.0, later) == pytest.approx(8 - 1.5 * 1.5 * 0.9**3, rel=1e-12)


def test_where_all_data_are_alike_numbers_of_samples_decide() -> None:
    method = feddu([[3, 1], [6, 2]], [9, 3], 1.0, 1.0, 0.25, 1, None, 0.75, fedavg(local=HALF))
    # 9 samples at the server, 4 at client 0: 8 → 4, and 9/13 of the server's 1.5
    assert one_round(method, [0], 0.0) == pytest.approx(4 + 1.5 * 9 / 13, rel=1e-12)


def softmax_step(x, inputs, targets, lr) -> np.ndarray:
    W, b = x[:12].reshape(3, 4), x[12:]
    p = np.exp(inputs @ W.T + b)
    p /= p.sum(1, keepdims=True)
    p[np.arange(len(targets)), targets] -= 1
    return x - lr * np.concatenate([(p.T @ inputs).ravel(), p.sum(0)]) / len(targets)


@pytest.mark.parametrize("seed", range(3))
def test_the_formula_on_softmax_regression(seed) -> None:
    world = classification(seed=seed)
    sizes, lr, C, decay = np.diff(world.offsets), 0.3, 2.0, 0.8
    inputs, targets = world.train.inputs.numpy(), world.train.targets.numpy()
    labels = np.array(
        [np.bincount(part, minlength=3) for part in np.split(targets, world.offsets[1:-1])]
    )
    P0 = np.bincount(world.server.targets.numpy(), minlength=3)
    local = Local(lr, 2, None, None)
    method = feddu(labels, P0, C, decay, 0.4, 3, None, 0.2, fedavg(local=local))
    simulation = Simulation.of(method, world, logistic(), seed, "reference", torch.float64)
    progress = begin(simulation)
    kept, held = simulation.assistant.pool, simulation.assistant.held_out
    assert (len(kept), len(held)) == (3, 2)  # of five
    together = np.concatenate([kept.inputs, held.inputs])
    assert sorted(map(tuple, together)) == sorted(map(tuple, world.server.inputs.numpy()))

    x, n0 = progress.server.x.numpy().copy(), 0.6 * P0.sum()
    for t, came in enumerate(world.participation.mask(10)):
        moves = []
        for n in np.flatnonzero(came):
            y = x
            for _ in range(2):
                part = slice(world.offsets[n], world.offsets[n + 1])
                y = softmax_step(y, inputs[part], targets[part], lr)
            moves.append(y - x)
        x = x + np.mean(moves, axis=0) if moves else x
        logits = held.inputs.numpy() @ x[:12].reshape(3, 4).T + x[12:]
        accuracy = np.mean(logits.argmax(1) == held.targets.numpy())
        D, n = divergence(P0, labels.sum(0)), sizes[came].sum()
        D_came = divergence(labels[came].sum(0), labels.sum(0)) if n else 0.0
        ratio = n0 * D_came / (n0 * D_came + n * D) if n else 1.0
        y = x
        for _ in range(3):
            y = softmax_step(y, kept.inputs.numpy(), kept.targets.numpy(), 0.2)
        x = x + C * (1 - accuracy) * decay**t * ratio * (y - x)
        advance(simulation, progress)
        np.testing.assert_allclose(progress.server.x.numpy(), x, rtol=1e-9, atol=1e-11)


def test_the_test_set_decides_nothing() -> None:
    """With other test samples the same model comes out."""
    paths = []
    for keep in (7, 1):
        world = classification()
        object.__setattr__(world, "test", world.test.take(np.arange(keep)))
        method = feddu(np.ones((6, 3)), [1, 2, 2], held_out=0.4)
        simulation = Simulation.of(method, world, logistic())
        progress = begin(simulation)
        for _ in range(4):
            advance(simulation, progress)
        paths.append(progress.server.x)
    assert torch.equal(*paths)


make = partial(feddu, LABELS, [5, 5])


@pytest.mark.parametrize(
    ("build", "sentence"),
    [
        (lambda: make(strength=0), "strength is 0; it must be positive"),
        (lambda: make(decay=1.1), "decay is 1.1"),
        (lambda: make(held_out=0), r"held_out is 0; it must be a share in \(0, 1\)"),
        (lambda: feddu([1, 2], [1, 1]), "shape of labels is"),
        (lambda: feddu([[1, 2], [3]], [1, 1]), "labels is no table of numbers"),
        (lambda: feddu([[1, 2], [0, 0]], [1, 1]), "labels of client 1 is"),
        (lambda: feddu([[1, -2]], [1, 1]), "a count in labels is -2.0"),
        (lambda: feddu(LABELS, [1, 1, 1]), "shape of server_labels is"),
        (lambda: feddu(LABELS, [0, 0]), "server_labels is"),
        (
            lambda: start(make(), torch.zeros(1), 3),
            "number of rows of labels is 2; it must be one for each of 3",
        ),
        (
            lambda: walk(make(), [0, 4], [[1, 1]], 8, server=[1, 2]),
            "this model does not tell classes",
        ),
        (
            lambda: Simulation.of(make(), quadratic([0, 4], [[1, 1]]), logistic()),
            "auxiliary data of the server is none; feddu must have some",
        ),
    ],
)
def test_bad_settings(build, sentence) -> None:
    with pytest.raises(InputError, match=sentence):
        build()
