"""The right process is named; rates and periods lie within their intervals."""

import numpy as np
import pytest
from tests.audit.hits import hits
from tests.audit.processes import KNOWN, drawn

from turnout.audit.history import from_mask, from_pairs
from turnout.audit.process import MEANINGS, fit
from turnout.participation import always, bernoulli, cyclic, excluded, lossy, markov, sine_drift

DRAWS = 10


@pytest.mark.parametrize("name", KNOWN)
def test_small_federations(name: str) -> None:
    """20 clients and 300 rounds: at most one of ten draws is taken for something else.

    Where 95 % are right, two or more of ten wrong have a chance of 8 %; seeds are fixed.
    """
    found = [fit(drawn(name, 20, 300, seed)).name for seed in range(DRAWS)]
    assert found.count(KNOWN[name][1]) >= DRAWS - 1, found


@pytest.mark.slow
@pytest.mark.parametrize("name", KNOWN)
@pytest.mark.parametrize(
    ("clients", "rounds", "draws"),
    [(20, 300, 100), (50, 500, 100), (20, 2000, 60), (300, 300, 60), (300, 1000, 40)],
)
def test_a_grid_of_sizes(name: str, clients: int, rounds: int, draws: int) -> None:
    """95 % or more, up to chance: a share of 95 % falls below the limit with a chance of 2 %."""
    right = hits(name, clients, rounds, draws)
    print(f"{name}, {clients} clients, {rounds} rounds: {right} of {draws}")  # noqa: T201
    assert right >= 0.95 * draws - 2.05 * np.sqrt(0.95 * 0.05 * draws)


def test_too_little_data_is_said() -> None:
    assert any("fewer than 200 rounds" in note for note in fit(drawn("markov", 5, 60, 0)).notes)


def test_too_short() -> None:
    found = fit(from_mask([[1, 0], [0, 1], [1, 1]]))
    assert found.name == "too short"
    assert found.tests == ()


def test_constant() -> None:
    assert fit(from_mask(always(3).mask(50))).name == "constant"
    assert fit(from_pairs([], [], clients=3, rounds=50)).name == "constant"


@pytest.mark.parametrize("rounds", [1, 2, 3, 7, 8, 9, 12, 20])
@pytest.mark.parametrize("clients", [1, 2, 7])
def test_logs_of_any_size_have_a_name(clients: int, rounds: int) -> None:
    for seed in range(5):
        mask = np.random.default_rng(seed).random((rounds, clients)) < 0.5
        assert fit(from_mask(mask)).name in MEANINGS


def test_a_hole_of_a_hundred_thousand_rounds() -> None:
    assert fit(from_pairs([0, 1], [99_990, 99_999], 2, 100_000)).name == "independent"


def test_losses_and_absence_do_not_hide_a_cycle() -> None:
    process = lossy(excluded(cyclic(0.2, clients=60, period=50), [3, 4]), 0.1)
    found = fit(from_mask(process.mask(500)))
    assert found.name == "cyclic"
    assert found.period is not None
    assert found.period.rounds == 50


def test_a_step_is_dated() -> None:
    p = np.linspace(0.05, 0.95, 60)
    before, after = bernoulli(p, seed=1).mask(400), bernoulli(p[::-1], seed=2).mask(400)
    found = fit(from_mask(np.concatenate([before, after[:250]])))
    assert found.name == "non-stationary"
    (change,) = found.changes
    assert change.kind == "step"
    assert abs(change.round - 400) <= 3


def test_day_needs_a_clock() -> None:
    history = from_mask(sine_drift(0.3, clients=60, amplitude=0.8, period=48).mask(400))
    assert fit(history).name == "periodic"
    timed = from_pairs(history.client, history.round, 60, 400, round_s=1800.0)
    assert fit(timed).name == "daily"


def coverage(draws: int, clients: int = 30, rounds: int = 500) -> tuple[int, int]:
    """Of so many logs, in how many the intervals hold the period, and the rate of coming back."""
    periods = chains = 0
    for seed in range(draws):
        true, draw = 31.7 + seed % 7, np.random.default_rng(seed)
        wave = np.sin(2 * np.pi * (np.arange(rounds) / true + draw.random()))
        mask = draw.random((rounds, clients)) < 0.3 * (1 + 0.6 * wave)[:, None]
        period = fit(from_mask(mask)).period
        periods += period is not None and period.low <= true <= period.high
        p = np.linspace(0.1, 0.6, clients)
        chain = fit(from_mask(markov(p, on=0.05, seed=seed).mask(rounds))).chain
        chains += chain is not None and chain.join.low <= 0.05 <= chain.join.high
    return periods, chains


def test_intervals_hold_the_truth() -> None:
    """Of 40, 95 % are 38; under 34 has a chance of 0.4 %."""
    assert min(coverage(40)) >= 34


@pytest.mark.slow
@pytest.mark.parametrize(("clients", "rounds"), [(10, 300), (30, 500), (100, 1000), (10, 2000)])
def test_intervals_have_their_nominal_coverage(clients: int, rounds: int) -> None:
    """Of 200, 95 % are 190; three standard deviations below are 181."""
    periods, chains = coverage(200, clients, rounds)
    print(f"{clients} clients, {rounds} rounds: {periods} periods, {chains} chains of 200")  # noqa: T201
    assert periods >= 181
    assert chains >= 181
