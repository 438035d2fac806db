"""FedAU's intervals and weights: closed forms against enumeration, and where B.6.8 holds."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import turnout
from turnout.algorithms import fedau
from turnout.errors import InputError
from turnout.participation import bernoulli, markov
from turnout.theory.intervals import (
    best_cutoff,
    corollary_4_cutoff,
    exact_weight_error,
    interval_mean,
    interval_variance,
    mean_weight_error,
    shrinkage,
    theorem_3,
    weight_error,
)
from turnout.theory.objective import fedau_cut

rates = st.floats(1e-4, 1.0)


@given(p=rates, cutoff=st.integers(1, 400))
def test_b_6_2_against_the_sum_over_lengths(p: float, cutoff: int) -> None:
    lengths = np.arange(1, cutoff + 1)
    chances = p * (1 - p) ** (lengths - 1)
    chances[-1] = (1 - p) ** (cutoff - 1)
    mean = float(chances @ lengths)
    variance = float(chances @ (lengths - mean) ** 2)
    assert interval_mean(p, cutoff).value == pytest.approx(mean, rel=1e-9)
    assert interval_variance(p, cutoff).value == pytest.approx(variance, rel=1e-6, abs=1e-12)


@given(p=st.floats(0.05, 1.0), cutoff=st.integers(1, 60))
def test_b_6_2_terms_sum_to_the_value(p: float, cutoff: int) -> None:
    for bound in (interval_mean(p, cutoff), interval_variance(p, cutoff)):
        assert sum(bound.terms.values()) == pytest.approx(bound.value, rel=1e-8, abs=1e-9)


@pytest.mark.parametrize("cutoff", [1, 2, 3, 5, None])
@pytest.mark.parametrize("p", [0.1, 0.5, 0.9, 1.0])
def test_the_exact_error_is_that_of_our_fedau_over_all_histories(
    p: float, cutoff: int | None
) -> None:
    # Each of the 2¹⁰ histories is a client of one mask.
    histories = np.array(list(product([0, 1], repeat=10)), dtype=bool).T
    omega = turnout.weights(fedau(cutoff=cutoff), histories)
    chance = np.prod(np.where(histories, p, 1 - p), axis=0)
    exact = exact_weight_error(p, cutoff, rounds=9)
    np.testing.assert_allclose(exact, (chance * (p * omega - 1) ** 2).sum(axis=1), atol=1e-12)


def test_the_exact_error_over_many_rounds_is_that_of_sampled_histories() -> None:
    mask = bernoulli(0.1, clients=20_000, seed=1).mask(300)
    squares = np.square(0.1 * turnout.weights(fedau(cutoff=20), mask) - 1)
    exact = exact_weight_error(0.1, 20, rounds=299)
    error = squares.std(axis=1) / np.sqrt(20_000)
    assert (np.abs(squares.mean(axis=1) - exact) < 5 * error + 1e-12).all()


def _ratio(p: float, cutoff: int, rounds: int) -> np.ndarray:
    t = np.arange(1, rounds + 1)
    bound = [weight_error(p, cutoff, int(s)).value for s in t]
    return exact_weight_error(p, cutoff, rounds)[1:] / np.maximum(bound, 1e-300)


@given(p=st.floats(0.005, 0.999), cutoff=st.integers(1, 80))
def test_b_6_8_holds_at_every_fixed_round(p: float, cutoff: int) -> None:
    assert _ratio(p, cutoff, 200).max() <= 1 + 1e-9


@pytest.mark.slow
def test_b_6_8_holds_at_every_fixed_round_of_a_grid() -> None:
    worst = {}
    for p in np.concatenate([np.geomspace(1e-4, 0.5, 12), [0.7, 0.9, 0.99]]):
        for cutoff in (1, 2, 3, 5, 10, 20, 50, 100, 300, 1000):
            worst[p, cutoff] = _ratio(float(p), cutoff, 3000).max()
    assert max(worst.values()) <= 1 + 1e-9
    assert max(worst.values()) > 0.99  # and is tight where clients are rare and K is short


def test_b_6_8_fails_for_clients_that_come_in_runs() -> None:
    # A Markov client's long gaps are cut more often than independent ones of the same rate.
    p, cutoff, rounds = 0.3, 10, 2000
    process = markov(np.full(300, p), seed=0)
    omega = turnout.weights(fedau(cutoff=cutoff), process.mask(rounds))[-1]
    measured = np.square(p * omega - 1).mean()
    assert measured > 2 * weight_error(p, cutoff, rounds).value


def test_b_6_8_says_when_no_interval_need_have_closed() -> None:
    assert not weight_error(0.1, 50, 49).holds
    assert weight_error(0.1, 50, 50).holds


@given(
    p=st.lists(st.floats(0.01, 1.0), min_size=1, max_size=4),
    cutoff=st.integers(1, 60),
    rounds=st.integers(2, 400),
)
def test_theorem_3_with_constants_holds_from_the_first_round(
    p: list[float], cutoff: int, rounds: int
) -> None:
    measured = np.mean([exact_weight_error(q, cutoff, rounds - 1).mean() for q in p])
    assert measured <= mean_weight_error(p, cutoff, rounds).value * (1 + 1e-9)


def test_theorem_3_has_the_order_of_the_exact_error() -> None:
    # K of Corollary 4 keeps the bias below the variance; the ratio must not grow with T.
    p, ratios = [0.1, 0.4], []
    for rounds in (500, 1000, 2000, 4000):
        cutoff = int(corollary_4_cutoff(p, rounds).value)
        measured = np.mean([exact_weight_error(q, cutoff, rounds - 1).mean() for q in p])
        ratios.append(measured / theorem_3(p, cutoff, rounds).value)
    assert max(ratios) < 0.2
    assert max(ratios) < 1.5 * min(ratios)


def test_corollary_4_makes_the_bias_one_over_t() -> None:
    for least in (0.5, 0.1, 0.02, 0.003):
        cutoff = int(corollary_4_cutoff([0.9, least], 10_000).value)
        assert (1 - least) ** (2 * cutoff) <= 1e-4 < (1 - least) ** (2 * (cutoff - 1))
    assert corollary_4_cutoff([1.0], 10_000).value == 1


def test_the_best_cutoff_is_the_best_of_all() -> None:
    p = np.array([0.02, 0.1, 0.1, 0.5])
    sums = {K: theorem_3(p, K, 3000).value for K in range(1, 3000)}
    assert best_cutoff(p, 3000).value == min(sums, key=lambda K: sums[K])


@pytest.mark.parametrize("process", ["independent", "markov"])
def test_shrinkage_is_where_fedau_weights_end(process: str) -> None:
    p, cutoff, rounds, clients = 0.05, 20, 4000, 200
    make = bernoulli if process == "independent" else markov
    mask = make(np.full(clients, p), seed=2).mask(rounds)
    when = [np.flatnonzero(mask[:, n]) for n in range(clients)]
    found = shrinkage(np.concatenate([np.diff(w) for w in when]), cutoff)
    weights = turnout.weights(fedau(cutoff=cutoff), mask)[-1]
    assert found == pytest.approx(p * weights.mean(), rel=0.03)
    if process == "independent":
        kept = fedau_cut([p, 1.0], cutoff).shares
        assert found == pytest.approx(kept[0] / kept[1], rel=0.03)  # 1 − (1−p)^K


@pytest.mark.parametrize(
    "call",
    [
        lambda: interval_mean(0.0, 5),
        lambda: interval_mean(1.5, 5),
        lambda: interval_mean(0.5, 0),
        lambda: exact_weight_error(0.5, 0, 5),
        lambda: theorem_3([], 5, 10),
        lambda: corollary_4_cutoff([0.5, 0.0], 10),
        lambda: shrinkage([0, 1], 5),
        lambda: shrinkage([], 5),
    ],
)
def test_bad_input_is_refused(call) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(InputError, match="must be"):
        call()
