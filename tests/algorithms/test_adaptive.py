"""FedAvgM, FedAdam and FedYogi: by hand, against their formulas, and around other methods."""

import numpy as np
import pytest
from tests.algorithms.naive import Intervals, moved, trace
from tests.conformance.worlds import HALF, walk

from turnout.algorithms import fedadam, fedau, fedavg, fedavgm, fedyogi
from turnout.errors import InputError

AVERAGE = fedavg(local=HALF)


def test_momentum_by_hand() -> None:
    # A client at 0, from 8, half the way, β = 1/2.
    # d = −4: v = −4                 8 → 4
    # d = −2: v = −2 − 2 = −4        → 0
    # nobody: v = −2                 → −2
    # d = 1:  v = −1 + 1 = 0         → −2
    method = fedavgm(1.0, 0.5, AVERAGE)
    assert walk(method, [0], [[1], [1], [0], [1]], 8) == [4, 0, -2, -2]


def directions(z, mask):
    """A loop whose body is given x and the round and returns the direction, for both averages."""
    fedau_weights = Intervals(len(z), cutoff=3)

    def average(x, came):
        return np.mean([moved(x, z[n], 0.5, 1) for n in np.flatnonzero(came)]) if came.any() else 0

    def weighted(x, came):
        deltas = np.array([moved(x, each, 0.5, 1) for each in z])
        step = np.sum(came * fedau_weights.weight * deltas) / len(z)
        fedau_weights.after(came)
        return step

    return {"fedavg": average, "fedau": weighted}


INNER = {"fedavg": AVERAGE, "fedau": fedau(cutoff=3, local=HALF)}


@pytest.mark.parametrize("inner", INNER)
@pytest.mark.parametrize("seed", range(2))
def test_the_formula_of_momentum(inner, seed) -> None:
    z, mask = trace(seed)
    direction = directions(z, mask)[inner]
    x, v, expected = 3.0, 0.0, []
    for came in mask:
        v = 0.8 * v + direction(x, came)
        x += 0.3 * v
        expected.append(x)
    found = walk(fedavgm(0.3, 0.8, INNER[inner]), z, mask, 3.0)
    np.testing.assert_allclose(found, expected, rtol=1e-10)


@pytest.mark.parametrize("inner", INNER)
@pytest.mark.parametrize("name", ["fedadam", "fedyogi"])
@pytest.mark.parametrize("seed", range(2))
def test_the_formulas_of_adaptive_steps(inner, name, seed) -> None:
    z, mask = trace(seed)
    direction = directions(z, mask)[inner]
    lr, b1, b2, tau = 0.05, 0.8, 0.9, 1e-2
    x, m, v, expected = 3.0, 0.0, tau**2, []
    for came in mask:
        d = direction(x, came)
        m = b1 * m + (1 - b1) * d
        yogi, adam = v - (1 - b2) * d**2 * np.sign(v - d**2), b2 * v + (1 - b2) * d**2
        v = yogi if name == "fedyogi" else adam
        x += lr * m / (np.sqrt(v) + tau)
        expected.append(x)
    method = {"fedadam": fedadam, "fedyogi": fedyogi}[name](lr, b1, b2, tau, INNER[inner])
    np.testing.assert_allclose(walk(method, z, mask, 3.0), expected, rtol=1e-9)


def test_without_momentum_it_is_a_server_step_size() -> None:
    z, mask = trace(1)
    plain = walk(fedavg(0.4, HALF), z, mask, 3.0)
    np.testing.assert_allclose(walk(fedavgm(0.4, 0.0, AVERAGE), z, mask, 3.0), plain, rtol=1e-12)


def test_yogi_and_adam_agree_where_squares_do_not_change() -> None:
    """v stays where d² = v: both add nothing."""
    methods = [build(1.0, 0.0, 0.5, 4.0, AVERAGE) for build in (fedadam, fedyogi)]
    # τ = 4 and v = 16: from 8 the direction is −4, so d² = v.
    assert [walk(method, [0], [[1]], 8) for method in methods] == [[8 - 4 / 8]] * 2


@pytest.mark.parametrize(
    ("build", "wrong"),
    [
        (fedavgm, {"server_momentum": 1.0}),
        (fedavgm, {"server_lr": 0}),
        (fedadam, {"first": 1.0}),
        (fedyogi, {"second": -0.1}),
        (fedadam, {"floor": 0.0}),
        (fedyogi, {"server_lr": -1}),
    ],
)
def test_bad_settings(build, wrong) -> None:
    with pytest.raises(InputError, match=next(iter(wrong))):
        build(**wrong)
