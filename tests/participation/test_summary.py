"""Expected against realised rates, to print."""

import numpy as np
import pytest

from turnout.participation import (
    bernoulli,
    excluded,
    given,
    lossy,
    step_drift,
    summarise,
    uniform,
)


def test_numbers() -> None:
    process = lossy(excluded(uniform(10, 5, seed=1), absent=4), loss=0.2, seed=3)
    found = summarise(process, 500)
    mask = process.mask(500)
    assert found.realised.tolist() == mask.mean(axis=0).tolist()
    assert found.delivered.tolist() == mask.sum(axis=1).tolist()
    assert found.cohorts.tolist() == [5] * 500
    assert found.expected is process.rates
    rows = {label: (expected, realised) for label, expected, realised in found.rows()}
    assert rows["never come"] == (0.4, 0.4)
    assert rows["mean"][0] == pytest.approx(0.4)
    assert rows["mean"][1] == pytest.approx(0.4, abs=0.02)
    assert rows["largest"] == (pytest.approx(2 / 3), mask.mean(axis=0).max())


def test_table() -> None:
    text = str(summarise(given([[1, 0], [1, 1], [0, 0], [1, 0]]), 4))
    assert text.splitlines() == [
        "given: 2 clients, 4 rounds",
        "rate          expected  realised",
        "mean               0.5       0.5",
        "smallest          0.25      0.25",
        "10 %               0.3       0.3",
        "median             0.5       0.5",
        "90 %               0.7       0.7",
        "largest           0.75      0.75",
        "never come           0         0",
        "delivered a round: 1 on average, 0 to 2; none in 1 rounds",
        "asked, but never arrived: 0.0%",
    ]


def test_unknown_rates_and_nobody() -> None:
    text = str(summarise(step_drift([0.0, 0.0], at=2), 4))
    assert "mean           unknown         0" in text
    assert "none in 4 rounds" in text
    assert "asked, but never arrived: none" in text


def test_losses_are_named() -> None:
    text = str(summarise(lossy(bernoulli(np.full(50, 0.5)), loss=1.0), 20))
    assert "asked, but never arrived: 100.0%" in text
