"""FedProx: by hand, against its formula, and what μ = 0 is."""

import numpy as np
import pytest
from tests.algorithms.naive import trace
from tests.conformance.worlds import walk

from turnout.algorithms import fedavg, fedprox
from turnout.errors import InputError
from turnout.parts.local import Local

TWO = Local(0.5, 2, None, None)


def test_by_hand() -> None:
    # A client at 0, from 8, μ = 1, steps of a half: 8 → 4; then 4 − (4 + (4 − 8))/2 = 4.
    assert walk(fedprox(1.0, local=TWO), [0], [[1]], 8) == [4]


@pytest.mark.parametrize("seed", range(3))
def test_its_formula_on_random_traces(seed) -> None:
    z, mask = trace(seed)
    mu, lr, eta, x, expected = 0.7, 0.2, 1.3, 2.0, []
    for came in mask:
        moves = []
        for n in np.flatnonzero(came):
            y = x
            for _ in range(4):
                y -= lr * ((y - z[n]) + mu * (y - x))
            moves.append(y - x)
        x += eta * np.mean(moves) if moves else 0
        expected.append(x)
    run = walk(fedprox(mu, eta, Local(lr, 4, None, None)), z, mask, 2.0)
    np.testing.assert_allclose(run, expected, rtol=1e-10)


def test_without_the_term_it_is_fedavg() -> None:
    z, mask = trace(0)
    assert walk(fedprox(0.0, local=TWO), z, mask, 2.0) == walk(fedavg(local=TWO), z, mask, 2.0)


def test_a_negative_mu() -> None:
    with pytest.raises(InputError, match=r"local.mu is -1; it must be 0 or more"):
        fedprox(-1)
