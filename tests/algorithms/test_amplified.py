"""Generalized FedAvg: by hand, and the eight panels of the paper's motivating example."""

import numpy as np
import pytest
import torch
from tests.conformance.worlds import HALF, path, quadratic, walk

from turnout.algorithms import amplified, fedau, fedavg, mifa
from turnout.costs import costs
from turnout.errors import InputError
from turnout.parts.local import Local
from turnout.round import start

FEDAVG = fedavg(local=HALF)


def test_by_hand() -> None:
    # Clients at 0 and 4, half the way; P = 2, η = 3: every second round x += 2·u.
    # 8 − 3 → 5 (u = −3); 5 − 1.5 → 3.5 (u = −4.5), − 9 → −5.5; then u starts anew:
    # −5.5 + 3.75 → −1.75 (u = 3.75); nobody comes, but the clock ticks: + 7.5 → 5.75;
    # 5.75 − 1.875 → 3.875
    trace = [[1, 1], [1, 1], [1, 1], [0, 0], [1, 1]]
    run = walk(amplified(2, 3.0, FEDAVG), [0, 4], trace, 8)
    assert run == [5, -5.5, -1.75, 5.75, 3.875]


def test_around_memory_it_amplifies_what_memory_moves() -> None:
    # MIFA alone: 16 → 12 → 8 (nobody came). P = 2, η = 2: the window −8 counts once more → 0.
    method = amplified(2, 2.0, mifa(local=HALF))
    assert walk(method, [0, 4], [[1, 0], [0, 0]], 16) == [12, 0]


def test_around_a_server_step_size() -> None:
    # The window holds the steps that were taken: 2·(−3), and 6 once more.
    assert walk(amplified(1, 2.0, fedavg(2.0, HALF)), [0, 4], [[1, 1]], 8) == [-4]


def test_a_factor_below_one_takes_back() -> None:
    # 8 → 5 → 3.5, then − ½·(−4.5) → 5.75
    assert walk(amplified(2, 0.5, FEDAVG), [0, 4], [[1, 1]] * 2, 8) == [5, 5.75]


def test_a_period_that_is_found_is_amplified_from_then_on() -> None:
    """Three in turn are known to be three after six cycles of as many rounds as are thought of."""
    z, lr, eta, longest = [0.0, 4.0, 1.0], 0.05, 5.0, 4
    mask = np.tile(np.eye(3, dtype=bool), (20, 1))
    x, u, window, expected = 8.0, 0.0, 0, []
    for t, came in enumerate(mask):
        move = lr * (z[int(np.flatnonzero(came)[0])] - x)
        x += move
        if t >= 6 * longest:
            u, window = u + move, window + 1
            if window == 3:
                x, u, window = x + (eta - 1) * u, 0.0, 0
        expected.append(x)
    method = amplified(None, eta, fedavg(local=Local(lr, 1, None, None)), longest)
    np.testing.assert_allclose(walk(method, z, mask, 8), expected, rtol=1e-12)


def test_while_no_period_is_found_nothing_is_amplified() -> None:
    mask = np.random.default_rng(0).random((90, 6)) < 0.4
    z, inner = np.arange(6.0), fedau(local=HALF)
    assert walk(amplified(None, 3.0, inner, longest=10), z, mask, 8) == walk(inner, z, mask, 8)


def test_what_is_kept_to_find_it_does_not_grow_with_the_population() -> None:
    method = amplified(None, longest=20)
    few, many = (costs(method, start(method, torch.zeros(10), n)).server for n in (10, 10_000))
    assert few == many


# The motivating example: F_n(x) = ½‖x − z_n‖², three clients in turn, P = 3, 15 rounds.
Z = np.array([[0.0, 0.0], [4.0, 0.0], [1.0, 3.0]])
TURNS = np.tile(np.eye(3, dtype=bool), (5, 1))
START = np.array([-2.0, 4.0])
PANELS = [(gamma, 1.0) for gamma in (0.05, 0.1, 0.25, 0.5)] + [
    (0.05, eta) for eta in (1.0, 2.0, 5.0, 10.0)
]


def panel(gamma: float, eta: float, steps: int = 1) -> np.ndarray:
    method = amplified(3, eta, fedavg(local=Local(gamma, steps, None, None)))
    world = quadratic([z[None] for z in Z], TURNS)
    return path(method, world, 15, START)


@pytest.mark.parametrize(("gamma", "eta"), PANELS)
@pytest.mark.parametrize("steps", [1, 5])
def test_a_panel_by_recursion(gamma, eta, steps) -> None:
    """The paper's algorithm, line by line, with the local steps of a quadratic in closed form."""
    x, u, t0, expected = START.copy(), np.zeros(2), 0, []
    for t in range(15):
        step = (1 - (1 - gamma) ** steps) * (Z[t % 3] - x)
        x, u = x + step, u + step
        if t + 1 - t0 == 3:
            x, u, t0 = x + (eta - 1) * u, np.zeros(2), t + 1
        expected.append(x)
    np.testing.assert_allclose(panel(gamma, eta, steps), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(("gamma", "eta"), PANELS)
def test_a_panel_in_closed_form(gamma, eta) -> None:
    """A cycle maps x to x* + (1 − η(1 − a))·(x − x*), with a = (1 − γ)³ and x* its fixed point."""
    keep = 1 - gamma
    a = keep**3
    fixed = gamma * (keep**2 * Z[0] + keep * Z[1] + Z[2]) / (1 - a)
    for cycle in range(5):
        start = fixed + (1 - eta * (1 - a)) ** cycle * (START - fixed)
        for t in range(3):
            pulls = sum(keep ** (t - j) * Z[j] for j in range(t + 1))
            expected = keep ** (t + 1) * start + gamma * pulls
            if t == 2:
                expected = start + eta * (expected - start)
            found = panel(gamma, eta)[3 * cycle + t]
            np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


def test_the_panels_tell_the_papers_story() -> None:
    best = Z.mean(0)

    def distance(gamma: float, eta: float) -> np.ndarray:
        return np.linalg.norm(panel(gamma, eta) - best, axis=1)

    assert distance(0.5, 1.0)[-3:].min() > 0.7  # circles
    assert distance(0.05, 1.0)[-1] > 0.45 * np.linalg.norm(START - best)  # crawls
    assert distance(0.05, 5.0)[-1] < 0.25  # close within a few cycles


@pytest.mark.parametrize(
    ("field", "arguments"),
    [("period", (0, 2.0)), ("period", (2.5, 2.0)), ("factor", (3, 0.0)), ("factor", (3, -1.0))],
)
def test_bad_settings(field, arguments) -> None:
    with pytest.raises(InputError, match=f"^{field} is .*; it must be "):
        amplified(*arguments)


def test_it_takes_its_clients_part_from_the_inner_method() -> None:
    inner = fedau(cutoff=3, local=HALF)
    assert amplified(2, 2.0, inner).weight is inner.weight
    assert amplified(2, 2.0, inner).local is inner.local
