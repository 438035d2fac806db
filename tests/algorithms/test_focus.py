"""FOCUS: the paper's recursion with its y, exact convergence, and what a client holds."""

import numpy as np
import pytest
from tests.algorithms.naive import trace
from tests.conformance.worlds import path, quadratic, walk

from turnout.algorithms import fedavg, focus
from turnout.parts.local import Local


def test_by_hand() -> None:
    # Clients at 0 and 4, from 8, one step of a half, N = 2; G are the gradients kept, s the sum.
    # both:     G = 8, 4:  s = −½·12/2 = −3                 8 → 5
    # client 0: G_0 = 5:   s = −3 − ½·(5 − 8)/2 = −2.25      → 2.75
    # nobody:   s stays                                      → 0.5
    # client 1: G_1 = −3.5: s = −2.25 + ½·7.5/2 = −0.375      → 0.125
    trace = [[1, 1], [1, 0], [0, 0], [0, 1]]
    one = Local(0.5, 1, None, None)
    assert walk(focus(local=one), [0, 4], trace, 8) == [5, 2.75, 0.5, 0.125]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("steps", [1, 4])
def test_the_papers_recursion(seed, steps) -> None:
    z, mask = trace(seed)
    N, lr, eta = len(z), 0.15, 0.6
    x, y, last, expected = 3.0, 0.0, np.zeros(N), []
    for came in mask:
        for n in np.flatnonzero(came):
            xi, yi, before = x, 0.0, last[n]
            for _ in range(steps):
                gradient = xi - z[n]
                yi += gradient - before
                before = gradient
                xi -= lr * yi
            last[n] = before
            y += yi
        x -= eta * lr / N * y
        expected.append(x)
    run = walk(focus(eta, Local(lr, steps, None, None)), z, mask, 3.0)
    np.testing.assert_allclose(run, expected, rtol=1e-9)


def test_it_converges_exactly_where_fedavg_does_not() -> None:
    """A constant step size, one client that comes always and one that comes every seventh round."""
    mask = np.array([[True, t % 7 == 3, t % 2 == 0] for t in range(14)])
    local = Local(0.1, 3, None, None)
    world = quadratic([0, 3, 9], mask)
    assert path(focus(local=local), world, 600, 0.0)[-1, 0] == pytest.approx(4, abs=1e-6)
    assert abs(path(fedavg(local=local), world, 600, 0.0)[-1, 0] - 4) > 0.5


def test_shares_are_folded_into_the_objective() -> None:
    world = quadratic([0, 3, 9], [[1, 1, 0], [0, 1, 1]], shares=[0.5, 0.3, 0.2])
    found = path(focus(local=Local(0.1, 2, None, None)), world, 800, 0.0)[-1, 0]
    assert found == pytest.approx(0.3 * 3 + 0.2 * 9, abs=1e-6)
