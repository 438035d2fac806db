"""p_n from the clients' classes, as in FedAU."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnout.errors import InputError
from turnout.participation import bernoulli, class_rates


def mixes(clients: int = 250, classes: int = 10, alpha: float = 0.1) -> np.ndarray:
    draws = np.random.Generator(np.random.Philox(1))
    return draws.dirichlet(np.full(classes, alpha), size=clients)


def test_one_class_a_client_shows_q() -> None:
    """With mix_n a unit vector, p_n = q_c·C·mean, and q sums to 1."""
    p = class_rates(np.eye(10), mean=0.01, floor=None, seed=3)
    assert p.sum() == pytest.approx(10 * 0.01)
    assert p.min() < 0.001  # alpha = 0.1: most classes hardly ever come


@given(seed=st.integers(0, 5000))
def test_p_is_linear_in_the_mix(seed: int) -> None:
    mix = mixes(20)
    unit = class_rates(np.eye(10), mean=0.05, floor=None, seed=seed)
    assert class_rates(mix, mean=0.05, floor=None, seed=seed) == pytest.approx(mix @ unit)
    counts = mix * np.arange(1, 21)[:, None]  # shares or counts, it is the same
    assert class_rates(counts, mean=0.05, floor=None, seed=seed) == pytest.approx(mix @ unit)


def test_the_mean_over_seeds() -> None:
    mix = mixes(100)
    seen = [class_rates(mix, mean=0.05, floor=None, seed=seed).mean() for seed in range(400)]
    # E⟨mix, q⟩·C = 1, and nothing is cut at 1 while C·mean < 1.
    assert np.mean(seen) == pytest.approx(0.05, abs=4 * np.std(seen) / 20)


def test_floor_and_ceiling() -> None:
    mix = np.eye(10)
    free = class_rates(mix, mean=0.5, floor=None, seed=0)
    assert class_rates(mix, mean=0.5, floor=0.02, seed=0) == pytest.approx(np.maximum(free, 0.02))
    assert free.max() == 1.0  # q_c·10·0.5 passes 1 and is cut
    assert free.min() < 0.02
    bernoulli(free)  # the rates are fit for use as they are


def test_smaller_alpha_is_less_equal() -> None:
    def spread(alpha: float) -> float:
        return float(np.mean([np.std(class_rates(mixes(), alpha, seed=s)) for s in range(30)]))

    assert spread(0.01) > spread(0.1) > spread(1.0) > spread(100.0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"mix": [[1, 0], [0, 0]]}, "the sum of the mix of client 1 is 0; it must be above 0"),
        ({"mix": [[1, -0.5]]}, "mix of client 0, class 1, is -0.5; it must be a finite number"),
        ({"mix": [[1, np.nan]]}, "mix of client 0, class 1, is nan; it must be a finite number"),
        ({"mix": [0.5, 0.5]}, "shape of mix is (2,); it must be [clients, classes]"),
        ({"mix": [[1], [1, 2]]}, "mix is [[1], [1, 2]]; it must be a table of numbers"),
        ({"mix": [[1]], "alpha": 0}, "alpha is 0.0; it must be a finite number above 0"),
        ({"mix": [[1]], "mean": 1.5}, "mean is 1.5; it must be a finite number above 0 and at"),
        ({"mix": [[1]], "floor": -0.1}, "floor is -0.1; it must be a finite number of at least"),
        ({"mix": [[1]], "seed": 0.5}, "seed is 0.5; it must be a whole number of at least 0"),
    ],
)
def test_bad_input(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(InputError) as error:
        class_rates(**arguments)
    assert message in str(error.value)
