"""FedAU: the lazy weights against Algorithm 2 walked round by round, and trajectories by hand."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.conformance.worlds import HALF, walk

import turnout
from turnout.algorithms import fedau, safari
from turnout.algorithms.fedau import interval_means
from turnout.errors import InputError
from turnout.round import asks_clients


def algorithm_2(mask: np.ndarray, cutoff: float) -> np.ndarray:
    """Algorithm 2 as the paper has it: through all rounds, client by client."""
    rounds, clients = mask.shape
    weights = np.ones((rounds, clients))
    for n in range(clients):
        omega, M, S = 1.0, 0, 0
        for t in range(1, rounds):
            S += 1
            if mask[t - 1, n] or cutoff == S:
                omega = S if M == 0 else (M * omega + S) / (M + 1)
                M += 1
                S = 0
            weights[t, n] = omega
    return weights


def member_rounds(mask, cutoff: float, decay: float | None, groups) -> np.ndarray:
    """Groups and decay, naively: all closings are kept, and averaged anew in every round.

    A group's open interval grows by one for each member and round. When j members take part, j
    intervals close that share it; when nobody has for K rounds, each member's interval of K closes.
    """
    rounds, clients = mask.shape
    weights = np.ones((rounds, clients))
    for group in set(groups):
        members = [n for n in range(clients) if groups[n] == group]
        closings: list[tuple[int, float]] = []  # how many intervals, and their length
        S = 0
        for t in range(1, rounds):
            S += 1
            j = sum(mask[t - 1, n] for n in members)
            if j:
                closings.append((j, S * len(members) / j))
                S = 0
            elif cutoff == S:
                closings.append((len(members), S))
                S = 0
            faded = [(1 - (decay or 0)) ** age for age in range(len(closings) - 1, -1, -1)]
            share = sum(f * count for f, (count, _) in zip(faded, closings, strict=True))
            total = sum(f * c * length for f, (c, length) in zip(faded, closings, strict=True))
            weights[t, members] = total / share if closings else 1.0
    return weights


def random_mask(seed: int, rounds: int, clients: int) -> np.ndarray:
    """Participation of all sorts: rates from never to always, some clients in long bursts."""
    draw = np.random.default_rng(seed)
    p = draw.choice([0.0, 0.01, 0.1, 0.3, 0.7, 1.0], size=clients)
    mask = draw.random((rounds, clients)) < p
    bursts = draw.random(clients) < 0.2
    length = max(1, rounds // 7)
    mask[:, bursts] = np.repeat(mask[::length, bursts], length, axis=0)[:rounds]
    return mask


cutoffs = st.one_of(st.none(), st.integers(1, 60))


@given(st.integers(0, 2**32 - 1), st.integers(1, 90), cutoffs)
@example(seed=0, rounds=90, cutoff=60)
@settings(max_examples=150)
def test_lazy_is_algorithm_2(seed, rounds, cutoff) -> None:
    mask = random_mask(seed, rounds, clients=25)  # 150 examples: 3 750 histories
    lazy = turnout.weights(fedau(cutoff=cutoff), mask)
    naive = algorithm_2(mask, np.inf if cutoff is None else cutoff)
    np.testing.assert_allclose(lazy, naive, rtol=1e-12)


@given(
    st.integers(0, 2**32 - 1),
    st.integers(1, 40),
    cutoffs,
    st.one_of(st.none(), st.floats(0.01, 1.0)),
    st.lists(st.integers(0, 4), min_size=1, max_size=9),
)
@settings(max_examples=150)
def test_groups_and_decay_are_their_naive_form(seed, rounds, cutoff, decay, groups) -> None:
    mask = random_mask(seed, rounds, len(groups))
    lazy = turnout.weights(fedau(cutoff=cutoff, decay=decay, groups=groups), mask)
    naive = member_rounds(mask, np.inf if cutoff is None else cutoff, decay, groups)
    np.testing.assert_allclose(lazy, naive, rtol=1e-9)


@given(
    st.integers(0, 2**32 - 1),
    st.integers(1, 20),
    st.sampled_from([None, 1, 3, 7]),
    st.sampled_from([None, 0.3, 1.0]),
    st.booleans(),
)
@settings(max_examples=100)
def test_delivered_updates_may_be_observed_in_any_parts(seed, rounds, cutoff, decay, grouped):
    mask = random_mask(seed, rounds, 8)
    groups = [0, 0, 1, 2, 2, 2, 1, 0] if grouped else None
    rule = interval_means(cutoff, decay, groups)
    whole, parts = rule.init(8), rule.init(8)
    draw = np.random.default_rng(seed)
    everybody = np.arange(8)
    for t, present in enumerate(mask):
        rows = np.flatnonzero(present)
        np.testing.assert_allclose(
            rule.weigh(parts, t, everybody), rule.weigh(whole, t, everybody), rtol=1e-12
        )
        whole = rule.observe(whole, t, rows)
        mixed = draw.permutation(rows)
        for part in np.split(mixed, np.sort(draw.integers(len(rows) + 1, size=2))):
            parts = rule.observe(parts, t, part)


def test_a_group_learns_the_mean_rate_of_its_members() -> None:
    """Two clients that come every second and every sixth round: mean rate 1/3, so ω → 3."""
    t = np.arange(600)
    mask = np.stack([t % 2 == 0, t % 6 == 1], axis=1)
    apart = turnout.weights(fedau(cutoff=None), mask)
    together = turnout.weights(fedau(cutoff=None, groups=[0, 0]), mask)
    np.testing.assert_allclose(apart[-1], [2, 6], rtol=0.02)
    np.testing.assert_allclose(together[-1], [3, 3], rtol=0.02)


def test_decay_follows_a_client_whose_rate_changes() -> None:
    t = np.arange(400)
    mask = np.where(t < 200, t % 2 == 0, t % 10 == 0)[:, None]
    plain = turnout.weights(fedau(cutoff=None), mask)[-1, 0]
    forgetful = turnout.weights(fedau(cutoff=None, decay=0.3), mask)[-1, 0]
    assert plain < 4  # 100 intervals of 2 against 20 of 10
    assert forgetful == pytest.approx(10, rel=0.01)
    assert turnout.weights(fedau(cutoff=None, decay=1.0), mask)[-1, 0] == 10  # the last one only


def test_the_mean_interval_is_what_the_paper_says() -> None:
    """(B.6.2): an interval cut at K has mean 1/p − (1 − p)^K/p; all ways to get one, enumerated."""
    K, p = 6, 0.3
    expected = 0.0
    for absent in range(K + 1):  # rounds missed before the client comes; K: it does not come
        mask = np.zeros((K + 1, 1), dtype=bool)
        mask[absent] = absent < K
        after = min(absent + 1, K)
        omega = turnout.weights(fedau(cutoff=K), mask)[after, 0]
        expected += (1 - p) ** absent * (p if absent < K else 1) * omega
    assert expected == pytest.approx(1 / p - (1 - p) ** K / p, rel=1e-12)


# Clients at 0 and 4, half the way each round, from 8; ω/N with N = 2. Client 1 stays away twice.
TRACE = [[1, 1], [1, 0], [0, 0], [0, 1], [0, 1]]


def test_by_hand_without_cutoff() -> None:
    # ω of client 1: 1 at first, still 1 (one interval of 1) in round 3, which closes one of 3: 2.
    # 8 → 5 → 3.75 → 3.75 → + 0.125/2 → 3.8125 → + 2·0.09375/2 → 3.90625
    expected = [5, 3.75, 3.75, 3.8125, 3.90625]
    assert walk(fedau(cutoff=None, local=HALF), [0, 4], TRACE, 8) == expected
    assert walk(fedau(cutoff=50, local=HALF), [0, 4], TRACE, 8) == expected


def test_by_hand_with_a_cutoff_of_2() -> None:
    # In round 3, rounds 1 and 2 are a closed interval: ω = (1 + 2)/2; then (1 + 2 + 1)/3.
    # … 3.75 → + 1.5·0.125/2 → 3.84375 → + 4/3·0.078125/2 → 3.84375 + 0.3125/6
    run = walk(fedau(cutoff=2, local=HALF), [0, 4], TRACE, 8)
    assert run[:4] == [5, 3.75, 3.75, 3.84375]
    assert run[4] == pytest.approx(3.84375 + 0.3125 / 6, abs=1e-15)


def test_weights_are_not_renormalised() -> None:
    """Known defect elsewhere: Σ ω_i Δ_i / Σ ω_i in place of Σ ω_i Δ_i / N."""
    trace = [[1, 1]] + [[1, 0]] * 9 + [[1, 1], [0, 1]]
    run = walk(fedau(cutoff=None, local=HALF), [0, 4], trace, 8)
    step = run[-1] - run[-2]
    mean_interval = (1 + 10) / 2  # of client 1, alone in the last round
    assert step == pytest.approx(mean_interval / 2 * (4 - run[-2]) / 2, rel=1e-12)


def test_a_lost_update_is_a_missed_round() -> None:
    asked = [[1, 1]] * 5
    lossy = walk(fedau(cutoff=2, local=HALF), [0, 4], TRACE, 8, asked=asked)
    assert lossy == walk(fedau(cutoff=2, local=HALF), [0, 4], TRACE, 8)


@pytest.mark.parametrize("cutoff", [None, 2])
def test_a_round_of_the_server_is_not_a_missed_round(cutoff) -> None:
    """With SAFARI, intervals count client rounds only."""
    method = safari(q=0.5, assistance_lr=0.5, inner=fedau(cutoff=cutoff, local=HALF))
    kinds = [asks_clients(method, 0, t) for t in range(12)]
    came = np.ones((12, 2), dtype=int)
    assert 3 < sum(kinds) < 9
    run = walk(method, [0, 4], came, 8, server=[2])
    x = 8.0
    for asks, found in zip(kinds, run, strict=True):
        x += (2 - x) / 2  # everybody's mean with ω = 1, and the server's own data, pull alike
        assert found == x, f"a weight other than 1 in a {'client' if asks else 'server'} round"


@pytest.mark.parametrize(
    ("field", "values"),
    [
        ("cutoff", [{"cutoff": 0}, {"cutoff": -1}, {"cutoff": 2.5}]),
        ("decay", [{"decay": 0.0}, {"decay": 1.5}, {"decay": float("nan")}]),
        ("groups of client 1", [{"groups": [0, -1]}]),
        ("groups of client 0", [{"groups": [0.5, 1.0]}]),
        ("shape of groups", [{"groups": []}, {"groups": [[0], [1]]}]),
    ],
)
def test_bad_settings(field, values) -> None:
    for value in values:
        with pytest.raises(InputError, match=f"^{field} is .*; it must be "):
            fedau(**value)


def test_groups_of_another_population() -> None:
    with pytest.raises(InputError, match="length of groups is 3; it must be the number of clients"):
        turnout.weights(fedau(groups=[0, 0, 1]), np.ones((2, 2), dtype=bool))
