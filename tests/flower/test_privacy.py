"""Central differential privacy: what is bounded, how much noise, and what it adds up to."""

from math import exp, sqrt

import numpy as np
import pytest
import torch
from scipy.optimize import brentq
from scipy.stats import norm
from tests.conformance.cases import classification, logistic
from tests.flower.federations import FakeTime, initial, names, nodes, own_data, trajectory

from turnout import InputError
from turnout.algorithms import (
    average_all,
    ca_fed,
    fedau,
    feddu,
    fedvarp,
    fltrust,
    mifa,
    scaffold,
    wait_full,
)
from turnout.flower import (
    InProcessGrid,
    Privacy,
    Rules,
    SecureAggregation,
    Strategy,
    client_app,
    privacy,
)
from turnout.parts.local import Local


def accounted():
    pytest.importorskip("dp_accounting", reason="dp-accounting is not installed: turnout[dp]")


def play(algorithm, mask, hidden, monkeypatch, **more):
    """The model after each round, whether or not there is an accountant."""
    monkeypatch.setattr(privacy, "_accounting", lambda: None)
    monkeypatch.setattr(Privacy, "epsilon", lambda self, deliveries: float(deliveries))
    world = classification(np.asarray(mask, dtype=bool))
    strategy = Strategy(
        algorithm,
        names(world),
        rules=Rules(min_round=0.0, start_with=6),
        participation=world.participation,
        privacy=hidden,
        clock=FakeTime().clock,
        **more,
    )
    grid = InProcessGrid(client_app(algorithm, logistic(), own_data(world)), nodes(6))
    models = torch.stack(trajectory(strategy, grid, initial(logistic()), len(mask)))
    return models, strategy, grid


@pytest.mark.parametrize("come", [1, 6])
def test_the_noise_in_the_model_is_the_same_however_many_come(come, monkeypatch):
    """Standard deviation z·clip in the sum, so z·clip·η/N in the model."""
    mask = np.zeros((60, 6), dtype=bool)
    mask[:, :come] = True
    hidden = Privacy(clip=1e-6, noise=3e6)
    models, _, _ = play(average_all(local=Local(lr=0.1)), mask, hidden, monkeypatch)
    steps = models[1:] - models[:-1]
    assert float(steps.std()) == pytest.approx(3.0 / 6, rel=0.1)  # 885 numbers: 2.4 % off
    assert abs(float(steps.mean())) < 0.07


def test_a_round_in_which_nobody_came_needs_no_noise(monkeypatch):
    mask = [[1] * 6, [0] * 6, [1] * 6]
    models, _, _ = play(average_all(), mask, Privacy(1.0, 1.0), monkeypatch)
    assert torch.equal(models[1], models[0])
    assert not torch.equal(models[2], models[1])


def test_two_runs_of_one_seed_have_different_noise(monkeypatch):
    mask = [[1] * 6]
    runs = [play(average_all(), mask, Privacy(1.0, 1.0), monkeypatch)[0] for _ in range(2)]
    assert not torch.equal(*runs)


def test_no_client_moves_the_sum_by_more_than_the_bound(monkeypatch):
    """Weights included: here they reach 3, and updates are long."""
    sums = []

    def seen(self, total, round):
        sums.append(total.clone())
        return total  # without noise, to see the sum itself

    monkeypatch.setattr(Privacy, "blur", seen)
    algorithm = fedau(cutoff=3, local=Local(lr=50.0))
    lone = np.zeros((8, 6), dtype=bool)
    lone[5:, 2] = True
    play(algorithm, lone, Privacy(clip=0.5, noise=1.0), monkeypatch)
    assert len(sums) == 3
    assert max(float(total.norm()) for total in sums) <= 0.5 + 1e-12
    assert max(float(total.norm()) for total in sums) > 0.49


def test_the_loss_reported_is_that_of_who_delivered_most_often(monkeypatch):
    mask = np.zeros((7, 6), dtype=bool)
    mask[[0, 2, 3, 6], 1] = True
    mask[[0, 1], 4] = True
    monkeypatch.setattr(privacy, "_accounting", lambda: None)
    monkeypatch.setattr(Privacy, "epsilon", lambda self, deliveries: float(deliveries))
    world = classification(mask)
    strategy = Strategy(
        fedau(),
        names(world),
        rules=Rules(min_round=0.0, start_with=6),
        participation=world.participation,
        privacy=Privacy(1.0, 1.0),
        clock=FakeTime().clock,
    )
    grid = InProcessGrid(client_app(fedau(), logistic(), own_data(world)), nodes(6))
    result = strategy.start(grid, initial(logistic()), 7)
    metrics = result.train_metrics_clientapp
    assert [metrics[n]["epsilon"] for n in range(1, 8)] == [1, 2, 2, 3, 3, 3, 4]
    assert all("train_loss" not in m and "num-examples" not in m for m in metrics.values())


@pytest.mark.parametrize(("noise", "deliveries"), [(1.0, 1), (1.0, 10), (4.0, 200), (0.7, 50)])
def test_epsilon_is_a_close_upper_bound_of_the_exact_one(noise, deliveries):
    """k Gaussian mechanisms with multiplier z are one with z/√k, whose (ε, δ) is known."""
    accounted()
    mu = sqrt(deliveries) / noise

    def delta(eps: float) -> float:
        return float(norm.cdf(mu / 2 - eps / mu) - exp(eps) * norm.cdf(-mu / 2 - eps / mu))

    exact = brentq(lambda eps: delta(eps) - 1e-5, 1e-6, 600)
    assert exact <= Privacy(1.0, noise).epsilon(deliveries) <= 1.2 * exact


def test_who_never_delivered_has_lost_nothing():
    assert Privacy(1.0, 1.0).epsilon(0) == 0


@pytest.mark.parametrize(
    ("algorithm", "sentence"),
    [
        (mifa(), "mifa remembers what clients have sent"),
        (mifa(memory="client"), "remembers"),
        (fedvarp(), "fedvarp remembers"),
        (scaffold(), "scaffold remembers"),
        (wait_full(), "wait_full holds updates back"),
        (ca_fed(), "ca_fed goes by the loss that each client reports"),
        (fltrust(), "fltrust judges and rescales every update"),
        (feddu([[1, 2]], [1, 1]), "feddu is told how many samples of each class every client has"),
    ],
)
def test_methods_for_which_a_rounds_noise_does_not_account_say_so(algorithm, sentence):
    with pytest.raises(InputError, match=sentence):
        Strategy(algorithm, 6, privacy=Privacy(1.0, 1.0))


def test_privacy_and_secure_aggregation_are_not_to_be_had_together(monkeypatch):
    monkeypatch.setattr(privacy, "_accounting", lambda: None)
    with pytest.raises(InputError, match="privacy and secure are both given"):
        Strategy(fedau(), 6, privacy=Privacy(1.0, 1.0), secure=SecureAggregation())


def test_a_bound_that_would_show_whom_it_refuses_does_not_go_with_privacy(monkeypatch):
    monkeypatch.setattr(privacy, "_accounting", lambda: None)
    with pytest.raises(InputError, match=r"norm_bound with privacy is 5\.0; it must be none"):
        Strategy(fedau(), 6, rules=Rules(norm_bound=5.0), privacy=Privacy(1.0, 1.0))


@pytest.mark.parametrize("bad", [{"clip": 0}, {"noise": -1.0}, {"delta": 1.0}])
def test_privacy_that_cannot_be_is_refused(bad):
    with pytest.raises(InputError, match=f"privacy.{next(iter(bad))} is"):
        Privacy(**{"clip": 1.0, "noise": 1.0, **bad})
