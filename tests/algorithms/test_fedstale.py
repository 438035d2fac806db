"""FedStale: against its formula, and the four methods that it is at its corners."""

import numpy as np
import pytest
from tests.algorithms.naive import Intervals, moved, trace
from tests.conformance.worlds import HALF, walk

from turnout.algorithms import fedau, fedavg, fedstale, fedvarp, known
from turnout.errors import InputError


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("weights", ["estimated", "delivered", "known"])
def test_its_formula_on_random_traces(seed, weights) -> None:
    z, mask = trace(seed)
    N, beta, eta, p = len(z), 0.6, 0.7, np.array([0.9, 0.4, 0.5, 0.2, 0.7])
    estimate = Intervals(N, cutoff=4)
    x, h, expected = 3.0, np.zeros(N), []
    for came in mask:
        deltas = np.array([moved(x, each, 0.5, 1) for each in z])
        omega = {"estimated": estimate.weight, "delivered": N / max(came.sum(), 1), "known": 1 / p}
        fresh = omega[weights] * (deltas - beta * h) / N
        x += eta * (beta * h.mean() + fresh[came].sum())
        h[came] = deltas[came]
        estimate.after(came)
        expected.append(x)
    given = {"rates": p} if weights == "known" else {"weights": weights, "cutoff": 4}
    run = walk(fedstale(beta, server_lr=eta, local=HALF, **given), z, mask, 3.0)
    np.testing.assert_allclose(run, expected, rtol=1e-10)


P = [0.9, 0.4, 0.5, 0.2, 0.7]


@pytest.mark.parametrize(
    ("corner", "other"),
    [
        (fedstale(1.0, "delivered", local=HALF), fedvarp(local=HALF)),
        (fedstale(0.0, "delivered", local=HALF), fedavg(local=HALF)),
        (fedstale(0.0, cutoff=4, local=HALF), fedau(cutoff=4, local=HALF)),
        (fedstale(0.0, rates=P, local=HALF), known(P, local=HALF)),
    ],
    ids=["FedVARP", "FedAvg", "FedAU", "known p"],
)
def test_its_corners(corner, other) -> None:
    z, mask = trace(7)
    np.testing.assert_allclose(walk(corner, z, mask, 3.0), walk(other, z, mask, 3.0), rtol=1e-12)


@pytest.mark.parametrize("wrong", [{"beta": 1.1}, {"beta": -0.1}, {"weights": "guessed"}])
def test_bad_settings(wrong) -> None:
    with pytest.raises(InputError, match=next(iter(wrong))):
        fedstale(**wrong)
