"""MIFA: each start by hand, its formula on random traces, and that it starts at all."""

import numpy as np
import pytest
from tests.conformance.worlds import HALF, walk

from turnout.algorithms import mifa
from turnout.errors import InputError

# Clients at 0 and 4, half the way each round, from 16.
TRACE = [[1, 0], [0, 0], [0, 1], [1, 0]]
everywhere = pytest.mark.parametrize("memory", ["server", "client"])


@everywhere
def test_zero(memory) -> None:
    # table (−8, 0): −4 → 12; again, though nobody came → 8; (−8, −2): −5 → 3; (−1.5, −2) → 1.25
    run = walk(mifa(memory=memory, local=HALF), [0, 4], TRACE, 16)
    assert run == [12, 8, 3, 1.25]


@everywhere
def test_seen(memory) -> None:
    # The mean over those seen: −8 → 8; −8 → 0; Δ = 2: (−8 + 2)/2 → −3; (1.5 + 2)/2 → −1.25
    run = walk(mifa("seen", memory, local=HALF), [0, 4], TRACE, 16)
    assert run == [8, 0, -3, -1.25]


@everywhere
def test_wait(memory) -> None:
    # Client 1 is awaited: 16, 16; then both updates were made at 16: (−8 − 6)/2 → 9;
    # (−4.5 − 6)/2 → 3.75
    run = walk(mifa("wait", memory, local=HALF), [0, 4], TRACE, 16)
    assert run == [16, 16, 9, 3.75]


@everywhere
def test_with_a_server_step_size(memory) -> None:
    # Only the model's step is scaled, not the table: 16 − ½·4 → 14; → 12; Δ = −4: ½·(−6) → 9
    run = walk(mifa(memory=memory, server_lr=0.5, local=HALF), [0, 4], TRACE[:3], 16)
    assert run == [14, 12, 9]


@everywhere
@pytest.mark.parametrize("init", ["zero", "seen"])
def test_it_starts_although_one_never_comes(init, memory) -> None:
    """Known defect elsewhere: MIFA that never starts when one client never comes."""
    trace = [[1, 0, 0], [0, 1, 0]] * 4
    run = walk(mifa(init, memory, local=HALF), [0, 4, 100], trace, 8)
    assert run[0] == 8 - (4 / 3 if init == "zero" else 4)
    assert len(set(run)) == len(run)


@everywhere
def test_wait_waits_for_ever_for_one_that_never_comes(memory) -> None:
    run = walk(mifa("wait", memory, local=HALF), [0, 4, 100], [[1, 1, 0]] * 6, 8)
    assert run == [8] * 6


@everywhere
@pytest.mark.parametrize("init", ["zero", "seen", "wait"])
@pytest.mark.parametrize("seed", range(3))
def test_its_formula_on_random_traces(init, memory, seed) -> None:
    draw = np.random.default_rng(seed)
    N, T, eta = 5, 40, 0.7
    z, mask = draw.normal(size=N), draw.random((T, N)) < 0.1 + draw.random(N) / 2
    x, table, seen, expected = 3.0, np.zeros(N), np.zeros(N, dtype=bool), []
    for came in mask:
        table[came] = ((z - x) / 2)[came]
        seen |= came
        if init == "zero":
            x += eta * table.mean()
        elif init == "seen" and seen.any():
            x += eta * table[seen].mean()
        elif init == "wait" and seen.all():
            x += eta * table.mean()
        expected.append(x)
    assert seen.all()
    run = walk(mifa(init, memory, server_lr=eta, local=HALF), z, mask, 3.0)
    np.testing.assert_allclose(run, expected, rtol=1e-10)


def test_weighted_objective() -> None:
    # N·q = (0.5, 1.5): table (0.5·(−4), 1.5·(−2)) → −2.5; both rows keep their shares.
    for memory in ("server", "client"):
        method = mifa(memory=memory, local=HALF)
        run = walk(method, [0, 4], [[1, 1], [0, 0]], 8, shares=[0.25, 0.75])
        assert run == [5.5, 3]


def test_bad_settings() -> None:
    with pytest.raises(InputError, match="init 'wiat' is not known; did you mean 'wait'"):
        mifa("wiat")
    with pytest.raises(InputError, match="memory 'clients' is not known; did you mean 'client'"):
        mifa(memory="clients")
