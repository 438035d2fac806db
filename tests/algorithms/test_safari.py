"""SAFARI and training on the server's data alone."""

from itertools import permutations

import numpy as np
import pytest
from tests.conformance.worlds import HALF, path, quadratic, walk

from turnout.algorithms import fedavg, safari, server_only
from turnout.errors import InputError
from turnout.round import asks_clients

FEDAVG = fedavg(local=HALF)


def rounds_of(q: float, seed: int, rounds: int) -> str:
    return "".join("C" if asks_clients(safari(q), seed, t) else "S" for t in range(rounds))


def test_by_hand() -> None:
    # Clients at 0 and 4 go half the way, the server has 6 and goes a quarter: seed 20 draws S C S C C.
    assert rounds_of(0.5, 20, 5) == "SCSCC"
    # S: 8 − 0.5 → 7.5; both: (2 − 7.5)/2 → 4.75; S: + 0.3125 → 5.0625;
    # client 0: half of 5.0625 → 2.53125; nobody → 2.53125
    method = safari(0.5, 1, None, 0.25, FEDAVG)
    trace = [[1, 1], [1, 1], [1, 1], [1, 0], [0, 0]]
    run = walk(method, [0, 4], trace, 8, seed=20, server=[6])
    assert run == [7.5, 4.75, 5.0625, 2.53125, 2.53125]


def test_server_alone_by_hand() -> None:
    # Two steps of a quarter towards the mean of 4 and 8, all data in each: 14 → 12 → 10.5;
    # clients are not asked.
    method = server_only(server_steps=2, server_batch=None, assistance_lr=0.25)
    assert walk(method, [0, 4], [[1, 1]] * 2, 14, server=[4, 8]) == [10.5, 8.53125]


def test_an_epoch_visits_every_sample_once() -> None:
    # Three steps of a half from 0 end at b_1/8 + b_2/4 + b_3/2, for an order b of (1, 2, 4).
    method = server_only(server_steps=None, server_batch=1, assistance_lr=0.5)
    orders = {b[0] / 8 + b[1] / 4 + b[2] / 2 for b in permutations((1, 2, 4))}
    found = {walk(method, [0], [[0]], 0, seed=s, server=[1, 2, 4])[0] for s in range(40)}
    assert found == orders


def test_q_is_the_share_of_client_rounds() -> None:
    for q in (0.2, 0.8):
        share = rounds_of(q, 0, 4000).count("C") / 4000
        assert share == pytest.approx(q, abs=4 * np.sqrt(q * (1 - q) / 4000))
    assert rounds_of(0.0, 0, 50) == "S" * 50
    assert rounds_of(1.0, 0, 50) == "C" * 50


def test_more_client_rounds_keep_those_there_were() -> None:
    """The same coin for every q: cells of one table differ by q alone."""
    few, many = rounds_of(0.4, 3, 200), rounds_of(0.8, 3, 200)
    assert all(m == "C" for f, m in zip(few, many, strict=True) if f == "C")
    assert rounds_of(0.4, 4, 200) != few


def test_without_auxiliary_data() -> None:
    world = quadratic([0, 4], [[1, 1]])
    with pytest.raises(InputError, match=r"safari with q = 0\.8 must have some to train on"):
        path(safari(inner=FEDAVG), world, 1, 0.0)
    assert path(safari(1.0, inner=FEDAVG), world, 1, 8.0)[0, 0] == 5  # none is needed


@pytest.mark.parametrize(
    ("field", "arguments"),
    [
        ("q", {"q": -0.1}),
        ("q", {"q": 1.1}),
        ("q", {"q": float("nan")}),
        ("server_steps", {"server_steps": 0}),
        ("server_batch", {"server_batch": 0}),
        ("assistance_lr", {"assistance_lr": 0.0}),
    ],
)
def test_bad_settings(field, arguments) -> None:
    with pytest.raises(InputError, match=f"^{field} is .*; it must be "):
        safari(**arguments)
