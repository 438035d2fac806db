"""SCAFFOLD: by hand, and against the paper's own lines on random traces."""

import numpy as np
import pytest
import torch
from tests.conformance.worlds import path, point, quadratic, walk

from turnout.algorithms import fedavg, scaffold
from turnout.parts.local import Local, sgd
from turnout.simulator import Simulation, advance, begin

TWO = Local(0.5, 2, None, None)  # two steps of a half: Kγ = 1


def test_by_hand() -> None:
    # Clients at 0 and 4, from 8. Steps along g − c_i + c; then c_i += −c − Δ/(Kγ).
    # both, c = 0:       8 → 4 → 2 and 8 → 6 → 5: Δ = −6, −3       8 → 3.5   c_i = 6, 3; c = 4.5
    # client 0, −1.5:    3.5 → 2.5 → 2: Δ = −1.5                     → 2
    #                    c_0 = 6 − 4.5 + 1.5 = 3; c = 4.5 + (3 − 6)/2 = 3, for N = 2, though |S| = 1
    # nobody:                                                        → 2
    # client 1, 0:       2 → 3 → 3.5: Δ = 1.5                        → 3.5
    #                    c_1 = 3 − 3 − 1.5 = −1.5; c = 3 + (−1.5 − 3)/2 = 0.75
    # both, −2.25, 2.25: 3.5 → 2.875 → 2.5625 and 3.5 → 2.625 → 2.1875
    #                    Δ = −0.9375, −1.3125: −1.125                → 2.375
    trace = [[1, 1], [1, 0], [0, 0], [0, 1], [1, 1]]
    assert walk(scaffold(local=TWO), [0, 4], trace, 8) == [3.5, 2, 2, 3.5, 2.375]


def progress_after(rounds: int, trace, z=(0, 4), start=8.0):
    simulation = Simulation.of(
        scaffold(local=TWO), quadratic(z, trace), point(), dtype=torch.float64
    )
    progress = begin(simulation, torch.tensor([start], dtype=torch.float64))
    for _ in range(rounds):
        advance(simulation, progress)
    return progress


def test_the_servers_control_is_the_mean_over_the_population() -> None:
    """Known defects elsewhere: no factor |S|/N, or only the last client's change."""
    trace = [[1, 1], [1, 0], [0, 1]]
    for rounds, control in [(1, 4.5), (2, 3.0), (3, 0.75)]:
        progress = progress_after(rounds, trace)
        assert progress.server.means["control"].item() == control
        assert progress.kept["control"].mean().item() == control


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("shares", [None, [0.4, 0.1, 0.3, 0.2]])
def test_the_papers_lines_on_random_traces(seed, shares) -> None:
    draw = np.random.default_rng(seed)
    N, T, K, lr, eta = 4, 25, 3, 0.2, 0.8
    z, mask = draw.normal(size=(N, 2)), draw.random((T, N)) < 0.5
    folds = np.ones(N) if shares is None else N * np.array(shares)  # N·q_n folds q into F_n
    x, c, c_i, expected = np.zeros(2), np.zeros(2), np.zeros((N, 2)), []
    for came in mask:
        moves, drifts = [], []
        for n in np.flatnonzero(came):
            y = x.copy()
            for _ in range(K):
                y -= lr * ((y - z[n]) - c_i[n] + c)
            new = c_i[n] - c + (x - y) / (K * lr)
            moves.append(folds[n] * (y - x))
            drifts.append(folds[n] * (new - c_i[n]))
            c_i[n] = new
        if moves:
            x = x + eta * np.mean(moves, axis=0)
            c = c + came.sum() / N * np.mean(drifts, axis=0)
        expected.append(x)
    world = quadratic_in_two(z, mask, shares)
    run = path(scaffold(eta, Local(lr, K, None, None)), world, T, [0.0, 0.0])
    np.testing.assert_allclose(run, expected, rtol=1e-10, atol=1e-12)


def quadratic_in_two(z, mask, shares):
    return quadratic([row[None] for row in z], mask, shares=shares)


@pytest.mark.parametrize("shares", [None, [0.5, 0.3, 0.2]])
def test_it_has_no_client_drift_where_fedavg_has(shares) -> None:
    """Clients of different curvature, many local steps: FedAvg's fixed point is not the optimum."""
    # ½‖x − z‖² with steps that differ a client drift in the same way as curvatures that do.
    z = [[0.0], [6.0, 6.0], [9.0, 9.0, 9.0, 9.0]]
    q = np.full(3, 1 / 3) if shares is None else np.array(shares)
    best = float(q @ [0, 6, 9])
    local = Local(0.3, None, 2, 1)  # two epochs, one sample a step: 2, 4 and 8 steps
    world = quadratic(z, [[1, 1, 1]], shares=shares)
    found = path(scaffold(local=local), world, 300, 0.0)[-1, 0]
    assert found == pytest.approx(best, abs=1e-9)
    drifted = path(fedavg(local=local), world, 300, 0.0)[-1, 0]
    assert abs(drifted - best) > 0.3


def test_control_variates_go_with_other_rules() -> None:
    local = Local(0.5, 2, None, None, sgd(clip=1.0))
    # Gradients 8 and 4 are clipped to 1: 8 → 7.5 → 7 for both. c_i = 1, c = 1; then drift 0.
    assert walk(scaffold(local=local), [0, 4], [[1, 1], [1, 1]], 8) == [7, 6]
