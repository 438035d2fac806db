"""Amplified SCAFFOLD: the paper's lines, window by window, and what it is with windows of one."""

import numpy as np
import pytest
from tests.algorithms.naive import trace
from tests.conformance.worlds import path, quadratic, walk

from turnout.algorithms import amplified, amplified_scaffold, fedavg, scaffold
from turnout.errors import InputError
from turnout.parts.local import Local


def test_by_hand() -> None:
    # Clients at 0 and 4, from 8, one step of a half, windows of two rounds, γ = 2.
    # client 0: c = 0:  Δ = −4; its gradient is 8                      8 → 4
    # client 1: c = 0:  Δ = 0; its gradient is 0                       → 4, twice as far: 0
    #           c_0 = 8, c_1 = 0, c = 4
    # client 0: g − 8 + 4 = −4: Δ = 2; its gradient is 0               → 2
    # client 0: from 2: g − 8 + 4 = −2, c_0 still 8: Δ = 1; gradient 2 → 3, from 0 twice as far: 6
    #           c_0 = (0 + 2)/2 = 1, c = 0.5
    # client 1: g − 0 + 0.5 = 2.5: Δ = −1.25                           → 4.75
    one = Local(0.5, 1, None, None)
    came = [[1, 0], [0, 1], [1, 0], [1, 0], [0, 1]]
    assert walk(amplified_scaffold(2, 2.0, local=one), [0, 4], came, 8) == [4, 0, 2, 6, 4.75]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("period", [1, 4, 7])
def test_the_papers_lines_on_random_traces(seed, period) -> None:
    z, mask = trace(seed)
    N, lr, steps, gamma, eta = len(z), 0.1, 3, 1.4, 0.9
    x = window_start = 3.0
    c_i, c, expected = np.zeros(N), 0.0, []
    seen: list[list[float]] = [[] for _ in range(N)]
    for t, came in enumerate(mask):
        ends = []
        for n in np.flatnonzero(came):
            y = x
            for _ in range(steps):
                gradient = y - z[n]
                seen[n].append(gradient)
                y -= lr * (gradient - c_i[n] + c)
            ends.append(y)
        if ends:
            x += eta * (np.mean(ends) - x)
        if (t + 1) % period == 0:
            x = window_start + gamma * (x - window_start)
            window_start = x
            for n in range(N):
                if seen[n]:
                    c_i[n] = np.mean(seen[n])
            c, seen = c_i.mean(), [[] for _ in range(N)]
        expected.append(x)
    method = amplified_scaffold(period, gamma, eta, Local(lr, steps, None, None))
    np.testing.assert_allclose(walk(method, z, mask, 3.0), expected, rtol=1e-9)


def test_with_windows_of_one_round_and_no_amplification_it_is_scaffold() -> None:
    z, mask = trace(3)
    local = Local(0.2, 3, None, None)
    found = walk(amplified_scaffold(1, 1.0, local=local), z, mask, 3.0)
    np.testing.assert_allclose(found, walk(scaffold(local=local), z, mask, 3.0), rtol=1e-9)


def test_its_first_window_is_that_of_amplified_fedavg() -> None:
    """All control variates are zero until the first window is over."""
    z, mask = trace(4)
    local = Local(0.2, 3, None, None)
    found = walk(amplified_scaffold(8, 2.0, local=local), z, mask[:9], 3.0)
    plain = walk(amplified(8, 2.0, fedavg(local=local)), z, mask[:9], 3.0)
    np.testing.assert_allclose(found[:8], plain[:8], rtol=1e-12)
    assert abs(found[8] - plain[8]) > 1e-3


def test_it_has_no_drift_at_the_optimum_of_a_cycle() -> None:
    """Two groups that take turns, with unequal data: FedAvg swings, this settles."""
    world = quadratic([[0.0], [3.0, 3.0], [9.0] * 4], [[1, 1, 0], [0, 1, 1]])
    local = Local(0.05, None, 2, 1)
    ends = {
        method.name: path(method, world, 800, 0.0)[-2:, 0]
        for method in (amplified_scaffold(2, 1.0, local=local), fedavg(local=local))
    }
    assert np.ptp(ends["amplified_scaffold"]) < 0.1 * np.ptp(ends["fedavg"])


@pytest.mark.parametrize("wrong", [{"period": 0}, {"factor": 0}])
def test_bad_settings(wrong) -> None:
    with pytest.raises(InputError, match=next(iter(wrong))):
        amplified_scaffold(**wrong)
