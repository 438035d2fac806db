"""The Markov chain of FedAU: stationary share, transitions, and the clipped case."""

from collections.abc import Callable
from importlib import import_module

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.participation.examples import z_scores

from turnout.participation import coin, markov
from turnout.participation.markov import transitions


@pytest.mark.parametrize(
    ("p", "join", "leave"),
    [
        (0.5, 0.05, 0.05),
        (0.1, 0.05, 0.45),
        (1 / 21, 0.05, 1.0),  # exactly at the limit
        (0.02, 0.05 / 2.45, 1.0),  # 0.05·(1/0.02 − 1) = 2.45 is too much
        (0.9, 0.05, 0.05 / 9),
        (1.0, 0.05, 0.0),
        (0.0, 0.0, 1.0),
    ],
)
def test_transitions_by_hand(p: float, join: float, leave: float) -> None:
    found = transitions(p)
    assert found.join == pytest.approx(join, rel=1e-12)
    assert 1 - found.stay == pytest.approx(leave, rel=1e-12)


@given(p=st.floats(0, 1), on=st.floats(1e-6, 1))
def test_p_is_stationary(p: float, on: float) -> None:
    join, stay = transitions(p, on)
    assert 0 <= join <= on
    assert 0 <= stay <= 1
    assert p * stay + (1 - p) * join == pytest.approx(p, abs=1e-12)


@pytest.mark.parametrize("p", [0.004, 0.02, 0.1, 0.5, 0.9])
def test_share_and_transitions(p: float) -> None:
    clients, rounds = 3000, 400
    mask = markov(p, clients, seed=7).mask(rounds)
    join, stay = (float(chance) for chance in transitions(p))

    was, then = mask[:-1], mask[1:]
    assert abs(z_scores((~was & then).sum(), (~was).sum(), join)) < 4
    if stay:
        assert abs(z_scores((was & then).sum(), was.sum(), stay)) < 4
    else:
        assert not (was & then).any(), "P(on→off) = 1, yet somebody stayed"

    # A mean of T correlated rounds is as good as T·(1 − ρ)/(1 + ρ) independent ones.
    memory = stay - join
    effective = clients * rounds * (1 - memory) / (1 + memory)
    assert abs(mask.mean() - p) < 4 * np.sqrt(p * (1 - p) / effective)


@pytest.mark.parametrize("p", [0.02, 0.3])
def test_it_starts_stationary(p: float) -> None:
    clients = 100_000
    for t, came in enumerate(markov(p, clients, seed=1).rounds(3)):
        assert abs(z_scores(len(came.delivered), clients, p)) < 4, f"round {t}"


def test_bits_and_chances_belong_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """The few clients whose leading bits tie look p up: it must be that of their state."""
    module = import_module("turnout.participation.markov")  # the package's name is the function
    seen: list[tuple[list[int], list[float]]] = []

    def toss(bits: np.ndarray, p: Callable[[int], float], *rest: object) -> np.ndarray:
        seen.append((bits.tolist(), [p(client) for client in range(len(bits))]))
        return coin.toss(bits, p, *rest)

    monkeypatch.setattr(module, "toss", toss)
    p = np.linspace(0, 1, 50)
    process = markov(p, seed=1)
    mask = process.mask(10)
    assert seen[0][1] == p.tolist()
    for t, (bits, chances) in enumerate(seen[1:]):
        join, stay = transitions(p)
        assert chances == np.where(mask[t], stay, join).tolist()
        assert bits == coin.leading(np.array(chances)).tolist()


def test_never_and_always() -> None:
    mask = markov([0.0, 1.0], seed=3).mask(500)
    assert not mask[:, 0].any()
    assert mask[:, 1].all()


def test_faster_chains_have_shorter_spells() -> None:
    def spells(on: float) -> int:
        mask = markov(0.5, 200, on=on, seed=0).mask(500)
        return int((~mask[:-1] & mask[1:]).sum())

    assert spells(0.05) < spells(0.2) < spells(0.8)
