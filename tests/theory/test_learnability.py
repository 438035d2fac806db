"""What missing clients make impossible, and what server data make possible again."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnout import draws
from turnout.errors import InputError
from turnout.theory.impossibility import simulate_impossibility
from turnout.theory.learnability import Relation, theorem_1, theorem_2, theorem_3, thresholds


@pytest.mark.parametrize("samples", [1, 10, 1000])
@pytest.mark.parametrize(("clients", "participating"), [(2, 1), (10, 6), (10, 8), (50, 49)])
def test_no_number_of_samples_helps_without_the_server(
    clients: int, participating: int, samples: int
) -> None:
    outcome = simulate_impossibility(clients, participating, samples, 30, repeats=4000)
    assert outcome.epsilon == theorem_1(clients, participating).value
    alone, helped = outcome.exceeding
    assert alone > 1 / 20
    assert outcome.hidden > 3 / 20
    for share, expected in zip((alone, helped), outcome.expected, strict=True):
        assert share == pytest.approx(expected, abs=5 * 0.5 / 4000**0.5)
    # Whatever is wrong with the learner is wrong on x_2 only, so its risk is 0 or 4ε.
    assert set(np.unique(outcome.clients_only.round(12))) <= {0.0, round(4 * outcome.epsilon, 12)}


def test_server_data_bring_the_risk_down_as_they_grow() -> None:
    shares = [simulate_impossibility(server_samples=n).exceeding[1] for n in (0, 5, 20, 100)]
    assert shares[0] == pytest.approx(0.5, abs=0.03)
    assert shares == sorted(shares, reverse=True)
    assert shares[-1] == 0


def test_no_learner_escapes() -> None:
    # A learner that always says 1 of x_2, one that says the rarer label, and one that says 0.
    for rule in (lambda seen: 1, lambda seen: seen[:, 1, 0] > seen[:, 1, 1], lambda seen: 0):

        def learner(seen, generator, rule=rule):  # type: ignore[no-untyped-def]
            rare = np.broadcast_to(rule(seen), len(seen)).astype(np.int64)
            return np.stack([np.zeros_like(rare), rare], axis=1)

        assert simulate_impossibility(learner=learner).exceeding[0] > 1 / 20


def test_the_construction_is_the_same_whenever_it_is_drawn() -> None:
    first, second = (simulate_impossibility(seed=4).clients_only for _ in range(2))
    np.testing.assert_array_equal(first, second)
    assert (first != simulate_impossibility(seed=5).clients_only).any()


def test_with_everybody_there_is_no_bound() -> None:
    assert theorem_1(10, 10).value == 0
    assert not theorem_1(10, 10).holds


unit = st.floats(0.0, 1.0)


def _risks(t: float, target: float, low: float, high: float) -> tuple[float, float]:
    """ε_P on [0, 1] and ε_Q on [low, high] of a threshold against the target."""
    inside = np.clip([t, target], low, high)
    return abs(t - target), float(abs(inside[0] - inside[1]) / (high - low))


@given(ends=st.tuples(unit, unit), t=unit, target=unit)
def test_the_thresholds_example_within_q(
    ends: tuple[float, float], t: float, target: float
) -> None:
    low, high = sorted(ends)
    if high - low < 1e-6:
        return
    t, target = (low + (high - low) * place for place in (t, target))
    eps_p, eps_q = _risks(t, target, low, high)
    relation = thresholds(0, 1, low, high)
    assert abs(eps_p - eps_q) <= relation.alpha * eps_q**relation.beta + 1e-9


def test_the_thresholds_example_fails_beyond_q() -> None:
    eps_p, eps_q = _risks(0.0, 0.2, 0.2, 0.8)
    relation = thresholds(0, 1, 0.2, 0.8)
    assert eps_q == 0
    assert abs(eps_p - eps_q) > 0.19 > relation.alpha * eps_q


def test_learning_thresholds_from_q_falls_at_theorem_2s_rate() -> None:
    # The least threshold that agrees with n samples of Q; its mean risk on P falls as 1/n.
    generator = draws.generator(0, "thresholds of tests")
    sizes, risks = [20, 60, 200, 600], []
    for n in sizes:
        samples = generator.uniform(0.2, 0.8, size=(4000, n))
        learnt = np.where(samples < 0.5, samples, 0.2).max(axis=1)
        risks.append(float(np.mean(0.5 - learnt)))
    assert np.polyfit(np.log(sizes), np.log(risks), 1)[0] == pytest.approx(-1, abs=0.05)
    bounds = [theorem_2(thresholds(0, 1, 0.2, 0.8), 1, n // 2, n // 2).value for n in sizes]
    assert np.polyfit(np.log(sizes), np.log(bounds), 1)[0] == pytest.approx(-1)
    assert all(risk < bound for risk, bound in zip(risks, bounds, strict=True))


def test_rates_by_hand() -> None:
    noisy = theorem_2(Relation(0.5, 0.5), 4, 30, 70, noise_exponent=0.0)
    assert list(noisy.terms.values()) == pytest.approx([0.2, 0.5 * 0.04**0.25])
    assert not noisy.explicit
    assert theorem_3(4, 100, noise_exponent=0.5).value == pytest.approx(0.04 ** (1 / 1.5))
    assert not theorem_3(4, 100, empirical_risk=0.2, empirical_best=0.1).holds


@pytest.mark.parametrize(
    "call",
    [
        lambda: theorem_1(5, 6),
        lambda: thresholds(0, 1, 0.5, 1.5),
        lambda: theorem_2(Relation(0.0, 1.0), 1, 10, 10, noise_exponent=2.0),
        lambda: theorem_3(0, 10),
        lambda: simulate_impossibility(5, 5),
        lambda: simulate_impossibility(server_samples=-1),
        lambda: simulate_impossibility(repeats=0),
    ],
)
def test_bad_input_is_refused(call) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(InputError, match="must be"):
        call()
