"""Known p: by hand, and unbiased by enumeration of everybody's coming and going."""

from itertools import product

import numpy as np
import pytest
from tests.conformance.worlds import HALF, path, quadratic, walk

from turnout.algorithms import average_all, fedavg, known
from turnout.errors import InputError
from turnout.parts.local import Local

TRACE = [[1, 1], [1, 0], [0, 0], [0, 1]]


def test_by_hand() -> None:
    # Weights 2 and 4: (2·(−8) + 4·(−6))/2 = −20 → −4; 2·2/2 → −2; nobody; 4·3/2 → 4
    assert walk(known([0.5, 0.25], local=HALF), [0, 4], TRACE, 16) == [-4, -2, -2, 4]


P = np.array([0.9, 0.5, 0.25, 0.1])
Z = [[0.0], [4.0, 5.0], [-2.0], [1.0, 7.0, 10.0]]
LOCAL = Local(0.25, 3, None, None)


def expected_step(algorithm, start: float, shares=None) -> float:
    """E[x_1 − x_0] over all 2^N attendances, each with its probability."""
    total = 0.0
    for came in product([0, 1], repeat=len(P)):
        chance = np.prod(np.where(came, P, 1 - P))
        world = quadratic(Z, [came], shares=shares)
        total += chance * (path(algorithm, world, 1, start)[0, 0] - start)
    return total


@pytest.mark.parametrize("shares", [None, [0.1, 0.2, 0.3, 0.4]])
@pytest.mark.parametrize("start", [-3.0, 2.5])
def test_its_expected_step_is_that_of_full_participation(start, shares) -> None:
    world = quadratic(Z, [np.ones(len(P))], shares=shares)
    full = path(fedavg(local=LOCAL), world, 1, start)[0, 0] - start
    assert expected_step(known(P, local=LOCAL), start, shares) == pytest.approx(full, rel=1e-12)


def test_constant_weights_minimise_the_objective_weighted_by_p() -> None:
    """FedAU's Theorem 1: with ω = 1, h(x) ∝ Σ p_n F_n(x); its minimum, and no other point, stays."""
    centres = np.array([np.mean(z) for z in Z])
    biased, fair = P @ centres / P.sum(), centres.mean()
    assert expected_step(average_all(local=LOCAL), biased) == pytest.approx(0, abs=1e-13)
    assert expected_step(known(P, local=LOCAL), fair) == pytest.approx(0, abs=1e-13)
    assert abs(expected_step(average_all(local=LOCAL), fair)) > 0.1
    assert abs(expected_step(known(P, local=LOCAL), biased)) > 0.1
    # And everywhere else the expected step is −∇h, for one local step: γ/N · Σ p_n (z_n − x).
    one = Local(0.25, 1, None, None)
    for x in (-3.0, 2.5):
        step = 0.25 * float(P @ (centres - x)) / len(P)
        assert expected_step(average_all(local=one), x) == pytest.approx(step, rel=1e-12)


@pytest.mark.parametrize("p", [0.0, -0.5, 1.5, float("nan")])
def test_p_that_cannot_be_divided_by(p) -> None:
    with pytest.raises(InputError, match=r"^p\[1\] is .*; it must be above 0 and at most 1"):
        known([0.5, p])


def test_p_of_another_population() -> None:
    with pytest.raises(InputError, match="p is '3 values'; it must be one for each of 2 clients"):
        walk(known([0.5, 0.5, 0.5], local=HALF), [0, 4], TRACE, 0)
    with pytest.raises(InputError, match="one probability a client"):
        known(0.5)
