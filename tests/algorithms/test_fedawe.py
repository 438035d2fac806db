"""FedAWE: the paper's lines with a model at each client, its cap, and both models' scores."""

import numpy as np
import pytest
import torch
from tests.algorithms.naive import moved, trace
from tests.conformance.worlds import HALF, point, quadratic, walk

from turnout import simulate
from turnout.algorithms import fedavg, fedawe
from turnout.errors import InputError
from turnout.parts.local import Local


def test_by_hand() -> None:
    # Clients at 0 and 4, from 8, half the way; both have x_i = 8 and τ = −1.
    # both:     8 − 4 = 4 and 8 − 2 = 6                        → 5      handed to both
    # client 0: 5 − 2.5 = 2.5                                  → 2.5    handed to 0
    # nobody:                                                  → 2.5
    # client 1: from 5, three rounds on: 5 + 3·(−0.5) = 3.5    → 3.5    handed to 1
    # both:     2.5 + 3·(−1.25) = −1.25 and 3.5 + 0.25 = 3.75  → 1.25
    trace = [[1, 1], [1, 0], [0, 0], [0, 1], [1, 1]]
    assert walk(fedawe(local=HALF), [0, 4], trace, 8) == [5, 2.5, 2.5, 3.5, 1.25]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("echo", "cap"), [(1.0, None), (0.7, None), (1.0, 3)])
def test_the_papers_lines_on_random_traces(seed, echo, cap) -> None:
    z, mask = trace(seed)
    lr, steps = 0.1, 3
    x, own, tau, expected = 3.0, np.full(len(z), 3.0), np.full(len(z), -1), []
    for t, came in enumerate(mask):
        reports = []
        for n in np.flatnonzero(came):
            G = -moved(own[n], z[n], lr, steps)
            since = t - tau[n] if cap is None else min(t - tau[n], cap)
            reports.append(own[n] - echo * since * G)
        if reports:
            x = np.mean(reports)
            own[came], tau[came] = x, t
        expected.append(x)
    run = walk(fedawe(echo, cap, local=Local(lr, steps, None, None)), z, mask, 3.0)
    np.testing.assert_allclose(run, expected, rtol=1e-9)


def test_under_full_participation_it_is_fedavg() -> None:
    z, mask = trace(0)
    everybody = np.ones_like(mask)
    found = walk(fedawe(local=HALF), z, everybody, 3.0)
    np.testing.assert_allclose(found, walk(fedavg(local=HALF), z, everybody, 3.0), rtol=1e-12)


def test_both_models_are_evaluated() -> None:
    """After one round with client 0 alone: the server's model is 4, those of clients 4 and 8."""
    world = quadratic([0, 4], [[1, 0]])
    run = simulate(fedawe(local=HALF), world, point(), 1, start=torch.tensor([8.0]))
    (metrics,) = run.history
    test = [np.mean([(x - z) ** 2 / 2 for z in (0, 4)]) for x in (4, 6)]
    assert [metrics["test_loss"], metrics["clients_test_loss"]] == pytest.approx(test)
    assert "clients_test_loss" not in simulate(fedavg(), world, point(), 1).history[0]


@pytest.mark.parametrize("wrong", [{"echo": 0}, {"cap": 0}])
def test_bad_settings(wrong) -> None:
    with pytest.raises(InputError, match=next(iter(wrong))):
        fedawe(**wrong)
