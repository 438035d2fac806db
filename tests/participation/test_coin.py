"""The biased coin: exact for any p, and nobody's business but the client's own."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.participation.examples import z_scores

from turnout.draws import generator
from turnout.participation import coin
from turnout.participation.coin import leading, toss


def heads(p: np.ndarray, round: int = 0, seed: int = 0) -> np.ndarray:
    return toss(leading(p), p.item, seed, "test", round)


@given(st.floats(0, 1))
def test_leading_bits_leave_an_exact_remainder(p: float) -> None:
    bits = int(leading(np.array([p]))[0])
    rest = Fraction(p) * 65536 - bits
    assert 0 <= rest <= 1
    assert Fraction(p * 65536.0 - bits) == rest


@settings(max_examples=30)
@given(seed=st.integers(0, 2**30), rest=st.floats(0, 1, exclude_max=True))
def test_a_tie_is_settled_by_the_bits_that_follow(seed: int, rest: float) -> None:
    # The leading bits as documented: raw words, four clients each. Every p is then made to tie.
    words = generator(seed, "test", 3).bit_generator.random_raw(5)
    drawn = [int(word) >> shift & 0xFFFF for word in words for shift in (0, 16, 32, 48)]
    p = np.array([(top + rest) / 65536 for top in drawn])
    exact = [Fraction(value) * 65536 - top for value, top in zip(p.tolist(), drawn, strict=True)]
    follow = [Fraction(generator(seed, "test", 3, i + 1).random()) for i in range(20)]
    expected = [f < e for f, e in zip(follow, exact, strict=True)]
    assert heads(p, 3, seed).tolist() == expected


@pytest.mark.parametrize(
    ("p", "clients", "rounds"),
    [(1e-8, 1_000_000, 600), (1e-6, 1_000_000, 100), (0.001, 10_000, 500), (0.37, 10_000, 500)],
)
def test_share_of_heads(p: float, clients: int, rounds: int) -> None:
    """p = 1e-8 must come 6 times in 6e8 draws: 24-bit uniforms would give 36, or none."""
    every = np.full(clients, p)
    bits = leading(every)
    count = sum(int(toss(bits, every.item, 1, "test", t).sum()) for t in range(rounds))
    assert abs(z_scores(count, clients * rounds, p)) < 4 if p > 1e-8 else 1 <= count <= 18


def test_share_of_tails_where_p_is_nearly_one() -> None:
    p = np.full(1_000_000, 1 - 1e-6)
    tails = sum(int((~heads(p, t)).sum()) for t in range(100))
    assert abs(z_scores(tails, 10**8, 1e-6)) < 4


def test_zero_never_and_one_always() -> None:
    # Two million draws hold some thirty with leading bits of all 0, and as many of all 1.
    assert not any(heads(np.zeros(500_000), t).any() for t in range(4))
    assert all(heads(np.ones(500_000), t).all() for t in range(4))


def test_a_client_is_indifferent_to_the_others() -> None:
    p = np.linspace(0, 1, 1001)
    everyone = heads(p)
    assert np.array_equal(heads(p[:501]), everyone[:501])
    others = np.where(np.arange(1001) == 500, p, 1 - p)
    assert heads(others)[500] == everyone[500]


def test_larger_p_never_comes_less() -> None:
    p = np.random.Generator(np.random.Philox(0)).random(200_000)
    assert (heads(p * 0.9) <= heads(p)).all()


def test_blocks_do_not_show(monkeypatch: pytest.MonkeyPatch) -> None:
    p = np.linspace(0, 1, 1003)
    whole = heads(p)
    monkeypatch.setattr(coin, "_BLOCK", 8)
    assert np.array_equal(heads(p), whole)


def test_rounds_clients_and_purposes_are_independent() -> None:
    p = np.full(4000, 0.5)
    table = np.array([heads(p, t) for t in range(50)], dtype=float) * 2 - 1
    assert abs((table[1:] * table[:-1]).mean()) < 5 / np.sqrt(49 * 4000)
    assert abs((table[:, 1:] * table[:, :-1]).mean()) < 5 / np.sqrt(50 * 3999)
    other = toss(leading(p), p.item, 0, "another", 0) * 2.0 - 1
    assert abs((other * table[0]).mean()) < 5 / np.sqrt(4000)
