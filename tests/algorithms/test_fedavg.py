"""Average participating and average all, by hand: clients at 0 and 4, half the way each round."""

import pytest
from tests.conformance.worlds import HALF, path, quadratic, walk

from turnout.algorithms import average_all, fedavg
from turnout.errors import InputError
from turnout.parts.local import Local

TRACE = [[1, 1], [1, 0], [0, 0], [0, 1]]


def test_average_participating() -> None:
    # Δ = (−4 − 2)/2, then −2.5 from client 0, then nobody, then +0.75 from client 1:
    # 8 → 5 → 2.5 → 2.5 → 3.25
    assert walk(fedavg(local=HALF), [0, 4], TRACE, 8) == [5, 2.5, 2.5, 3.25]


def test_average_participating_with_a_server_step_size() -> None:
    # 8 + 2·(−3) → 2; 2 + 2·(−1) → 0; nobody; 0 + 2·2 → 4
    assert walk(fedavg(server_lr=2.0, local=HALF), [0, 4], TRACE, 8) == [2, 0, 0, 4]


def test_average_all() -> None:
    # Absent clients count as no update: (−4 − 2)/2, (−2.5 + 0)/2, 0, (0 + 0.125)/2:
    # 8 → 5 → 3.75 → 3.75 → 3.8125
    assert walk(average_all(local=HALF), [0, 4], TRACE, 8) == [5, 3.75, 3.75, 3.8125]


def test_several_local_steps() -> None:
    # Two halves: Δ = ¾·(z − x). Both: ¾·(2 − 8) = −4.5; then client 0: ¾·(0 − 3.5) = −2.625.
    local = Local(0.5, 2, None, None)
    assert walk(fedavg(local=local), [0, 4], [[1, 1], [1, 0]], 8) == [3.5, 0.875]


def test_weighted_objective() -> None:
    # N·q = (0.5, 1.5): Δ = (0.5·(−4) + 1.5·(−2))/2 = −2.5 → 5.5. Its fixed point is 0.25·0 + 0.75·4.
    world = quadratic([0, 4], [[1, 1]], shares=[0.25, 0.75])
    run = path(fedavg(local=HALF), world, 60, 8.0)
    assert run[0, 0] == 5.5
    assert run[-1, 0] == pytest.approx(3, abs=1e-12)


@pytest.mark.parametrize("rate", [0, -1.0, float("nan")])
def test_server_step_size_must_be_positive(rate) -> None:
    with pytest.raises(InputError, match=r"^server_lr is .*; it must be positive$"):
        fedavg(server_lr=rate)
