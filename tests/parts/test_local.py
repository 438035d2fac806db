"""Local rules against naive loops, one client at a time, number by number."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
import torch

from turnout.algorithms import fedavg
from turnout.algorithms.scaffold import control_variates
from turnout.errors import InputError
from turnout.parts.local import Ended, Halve, Local, LocalRule, Piecewise, proximal, sgd
from turnout.round import Broadcast, client_step

STEPS = (5, 3, 3, 1)
ROWS, DIM, LR = len(STEPS), 3, 0.2
CENTRES = np.random.default_rng(0).normal(size=(ROWS, max(STEPS), DIM))
X = np.array([1.0, -2.0, 0.5])


@dataclass(frozen=True)
class Fake:
    """Work whose gradient is 2·(x − z) with another z in each step, and that counts who asks."""

    asked: list[tuple[int, int]]
    steps: tuple[int, ...] = STEPS

    def gradient(self, x: torch.Tensor, step: int) -> torch.Tensor:
        self.asked.append((step, len(x)))
        return 2 * (x - torch.from_numpy(CENTRES[: len(x), step]))


def broadcast(lr: float | torch.Tensor = LR, **means: torch.Tensor) -> Broadcast:
    one = np.ones(ROWS)
    return Broadcast(torch.from_numpy(X), 0, lr, one, one, means)


def block(rule: LocalRule, lr=LR, kept=None, **means):
    """Δ of a block through `client_step`, and what its clients keep."""
    asked: list[tuple[int, int]] = []
    algorithm = fedavg(local=Local(rule=rule))
    upload, after = client_step(algorithm, broadcast(lr, **means), Fake(asked), kept or {})
    assert asked == [(0, 4), (1, 3), (2, 3), (3, 1), (4, 1)]  # those still at work are a prefix
    return upload.update.numpy(), after


Naive = Callable[[int, np.ndarray, np.ndarray, dict], np.ndarray]


def naive(step: Naive, lr=(LR,) * ROWS) -> np.ndarray:
    """Client after client, step after step: `step` is (row, gradient, x, memory) → direction."""
    updates = []
    for row in range(ROWS):
        x, memory = X.copy(), {}
        for k in range(STEPS[row]):
            x = x - lr[row] * step(row, 2 * (x - CENTRES[row, k]), x, memory)
        updates.append(x - X)
    return np.array(updates)


def clipped(gradient: np.ndarray, bound: float) -> np.ndarray:
    norm = np.linalg.norm(gradient)
    return gradient if norm <= bound else gradient / norm * bound


def heavy(gradient: np.ndarray, memory: dict, decay: float) -> np.ndarray:
    memory["v"] = decay * memory.get("v", 0) + gradient
    return memory["v"]


RULES: dict[str, tuple[LocalRule, Naive]] = {
    "plain": (sgd(), lambda row, g, x, m: g),
    "momentum": (sgd(momentum=0.9), lambda row, g, x, m: heavy(g, m, 0.9)),
    "weight decay": (sgd(weight_decay=0.3), lambda row, g, x, m: g + 0.3 * x),
    "clip": (sgd(clip=1.5), lambda row, g, x, m: clipped(g, 1.5)),
    "all": (
        sgd(0.5, 0.3, 1.5),
        lambda row, g, x, m: heavy(clipped(g, 1.5) + 0.3 * x, m, 0.5),
    ),
    "proximal": (proximal(0.7), lambda row, g, x, m: g + 0.7 * (x - X)),
    "proximal, momentum": (
        proximal(0.7, sgd(momentum=0.5)),
        lambda row, g, x, m: heavy(g + 0.7 * (x - X), m, 0.5),
    ),
}


@pytest.mark.parametrize("name", RULES)
def test_a_block_is_its_clients_one_by_one(name) -> None:
    rule, step = RULES[name]
    np.testing.assert_allclose(block(rule)[0], naive(step), rtol=1e-12)


@pytest.mark.parametrize("name", RULES)
def test_a_step_size_for_each_client(name) -> None:
    rule, step = RULES[name]
    lr = (0.1, 0.4, 0.05, 0.3)
    column = torch.tensor(lr, dtype=torch.float64)[:, None]
    np.testing.assert_allclose(block(rule, column)[0], naive(step, lr), rtol=1e-12)


def test_clipping_leaves_small_and_zero_gradients_alone() -> None:
    x = torch.zeros(3, 2)
    gradient = torch.tensor([[0.0, 0.0], [0.3, 0.4], [3.0, 4.0]])
    moved, _ = sgd(clip=1.0).step(gradient, x, 1.0, {})
    torch.testing.assert_close(moved, -torch.tensor([[0.0, 0.0], [0.3, 0.4], [0.6, 0.8]]))


@pytest.mark.parametrize("inner", [sgd(), sgd(momentum=0.5), proximal(0.7)], ids=str)
def test_control_variates(inner) -> None:
    draw = np.random.default_rng(1)
    own, mean = draw.normal(size=(ROWS, DIM)), draw.normal(size=DIM)
    anchor = 0.7 if inner.name.startswith("proximal") else 0.0
    decay = 0.5 if "momentum" in inner.name else 0.0

    def step(row, g, x, memory):
        return heavy(g - own[row] + mean + anchor * (x - X), memory, decay)

    kept = {"control": torch.from_numpy(own.copy())}
    means = {"control": torch.from_numpy(mean)}
    update, after = block(control_variates(inner), kept=kept, **means)
    expected = naive(step)
    np.testing.assert_allclose(update, expected, rtol=1e-12)
    # Option II, with each client's own number of steps.
    taken = np.array(STEPS)[:, None]
    control = own - mean - expected / (taken * LR)
    np.testing.assert_allclose(after["control"], control, rtol=1e-12)
    np.testing.assert_array_equal(kept["control"], own)


def test_option_ii_of_plain_steps_is_the_mean_gradient() -> None:
    own, mean = torch.ones(ROWS, DIM).double(), torch.full((DIM,), 0.3, dtype=torch.float64)
    gradients: list[list[np.ndarray]] = [[] for _ in range(ROWS)]

    def step(row, g, x, memory):
        gradients[row].append(g)
        return g - 1 + 0.3

    naive(step)
    _, after = block(control_variates(), kept={"control": own}, control=mean)
    np.testing.assert_allclose(
        after["control"], [np.mean(each, axis=0) for each in gradients], rtol=1e-11
    )


def test_a_rule_that_starts_from_the_clients_own_model() -> None:
    """Such as FedAWE: Δ counts from the broadcast model, and the client's own copy stays whole."""

    def begin(x, kept, told):
        return kept["own"], {}

    def end(ended: Ended, kept, told):
        return ended.update, {"own": ended.update}  # Δ itself is kept

    rule = sgd()._replace(begin=begin, end=end, kept=("own",))
    algorithm = fedavg(local=Local(rule=rule))
    own = torch.zeros(ROWS, DIM, dtype=torch.float64)
    half = broadcast()._replace(weights=np.full(ROWS, 0.5))
    upload, after = client_step(algorithm, half, Fake([]), {"own": own.clone()})
    expected = []
    for row in range(ROWS):
        x = np.zeros(DIM)
        for k in range(STEPS[row]):
            x = x - LR * 2 * (x - CENTRES[row, k])
        expected.append(x - X)
    np.testing.assert_allclose(upload.update, 0.5 * np.array(expected), rtol=1e-12)
    np.testing.assert_allclose(after["own"], expected, rtol=1e-12)  # unweighted


def test_schedules() -> None:
    halve = Halve(0.4, every=1000, after=10_000)
    assert [halve(t) for t in (0, 9_999, 10_000, 10_999, 11_000, 12_000)] == [
        0.4, 0.4, 0.4, 0.4, 0.2, 0.1,
    ]  # fmt: skip
    steps = Piecewise((0.1, 0.01, 0.001), (2, 5))
    assert [steps(t) for t in range(7)] == [0.1, 0.1, 0.01, 0.01, 0.01, 0.001, 0.001]
    assert Local(lr=halve).rate(11_000) == 0.2
    assert Local(lr=0.3).rate(11_000) == 0.3
    assert Local(lr=lambda t: 1 / (t + 1)).rate(3) == 0.25


def refused(field: str, build: Callable[[], object]) -> None:
    with pytest.raises(InputError, match=f"^{field} is .*; it must be "):
        build()


def test_bad_settings() -> None:
    refused("local.lr", lambda: Local(lr=0))
    refused("local.lr", lambda: Local(lr=float("nan")))
    refused("local.steps", lambda: Local(steps=0))
    refused("local.steps", lambda: Local(steps=5, epochs=1))
    refused("local.steps", lambda: Local(steps=None))
    refused("local.epochs", lambda: Local(steps=None, epochs=0))
    refused("local.batch_size", lambda: Local(batch_size=0))
    refused("local.momentum", lambda: sgd(momentum=1.0))
    refused("local.momentum", lambda: sgd(momentum=-0.1))
    refused("local.weight_decay", lambda: sgd(weight_decay=-1.0))
    refused("local.clip", lambda: sgd(clip=0.0))
    refused("local.mu", lambda: proximal(-0.1))
    refused("local.schedule.values", lambda: Piecewise((0.1,), (5,)))
    refused("local.schedule.values", lambda: Piecewise((0.1, 0.0), (5,)))
    refused("local.schedule.until", lambda: Piecewise((0.3, 0.2, 0.1), (5, 5)))
    refused("local.schedule.every", lambda: Halve(0.1, 0))
    refused("local.schedule.lr", lambda: Halve(0.0, 5))
