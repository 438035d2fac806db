"""The round as pure functions: what is sent, what comes back, what the server makes of it."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
import torch
from tests.conformance.worlds import HALF, walk

import turnout
from turnout import algorithms as a
from turnout.algorithm import Gate
from turnout.errors import InputError
from turnout.parts.local import Halve, Local
from turnout.round import (
    MEMORY,
    Broadcast,
    Upload,
    absorb,
    announce,
    client_step,
    close,
    keeps,
    scale,
    server_step,
    start,
)
from turnout.state import tally_of

ONE = torch.tensor([8.0], dtype=torch.float64)


@dataclass(frozen=True)
class Pull:
    """Gradients x − z of clients at these points, the same in every step."""

    z: tuple[float, ...]
    taken: int = 1

    @property
    def steps(self) -> list[int]:
        return [self.taken] * len(self.z)

    def gradient(self, x: torch.Tensor, step: int) -> torch.Tensor:
        return x - torch.tensor(self.z, dtype=x.dtype)[:, None]


def uploaded(*updates: float, weights=None, **changes) -> Upload:
    column = torch.tensor(updates, dtype=torch.float64)[:, None]
    ones = np.ones(len(updates)) if weights is None else np.array(weights)
    more = {n: torch.tensor(c, dtype=torch.float64)[:, None] for n, c in changes.items()}
    return Upload(column, ones, more)


def rows(*numbers: int) -> np.ndarray:
    return np.array(numbers, dtype=np.int64)


# start


def test_the_state_is_the_servers_own() -> None:
    x = ONE.clone()
    state = start(a.fedavg(), x, 3)
    x.fill_(0)
    assert state.x.item() == 8
    assert (state.round, state.client_round, state.delivered, state.seen_count) == (0, 0, 0, 0)
    assert state.contributed is None
    assert start(a.wait_minibatch(), ONE, 3).contributed is not None


@pytest.mark.parametrize(
    "shares", [[0.5, 0.5], [0.5, 0.6, 0.1], [0.5, 0.6, -0.1], [[1 / 3] * 3], [np.nan, 0.5, 0.5]]
)
def test_shares_that_are_none(shares) -> None:
    with pytest.raises(InputError, match=r"^shares is .*; it must be one number for each of 3 "):
        start(a.fedavg(), ONE, 3, np.array(shares))


def test_bookkeeping_is_small() -> None:
    """FedAU at a million clients: at most 40 bytes each, with the table of those seen."""
    clients = 1000
    state = start(a.fedau(), ONE, clients)
    tables = [*state.weight.values(), state.seen]
    assert sum(table.nbytes for table in tables) <= 24 * clients


# announce


def test_a_broadcast_holds_what_these_clients_need() -> None:
    local = Local(lr=Halve(0.4, every=2))
    state = start(a.known([0.5, 0.25, 1.0], local=local), ONE, 3, np.array([0.5, 0.3, 0.2]))
    state.round, state.client_round = 5, 3
    sent = announce(a.known([0.5, 0.25, 1.0], local=local), state, rows(1, 2))
    assert sent.x is state.x
    assert sent.round == 3  # the clock of histories …
    assert sent.lr == 0.1  # … while schedules run on rounds of either kind
    assert sent.weights.tolist() == [4, 1]
    np.testing.assert_allclose(sent.shares, [0.9, 0.6])  # N·q_n
    assert announce(a.fedavg(), start(a.fedavg(), ONE, 3), rows(1, 2)).shares.tolist() == [1, 1]


@pytest.mark.parametrize("which", [slice(1, 3), [2, 0]], ids=str)
def test_a_part_of_a_broadcast(which) -> None:
    x, lr = torch.arange(6.0).reshape(3, 2), torch.arange(3.0)[:, None]
    numbers = np.arange(3.0)
    part = Broadcast(x, 4, lr, numbers, numbers + 5, {"c": x[0]}).part(which)
    assert torch.equal(part.x, x[which])
    assert torch.equal(part.lr, lr[which])
    assert part.weights.tolist() == numbers[which].tolist()
    assert part.shares.tolist() == (numbers[which] + 5).tolist()
    assert part.round == 4
    assert torch.equal(part.means["c"], x[0])
    common = Broadcast(x[0], 4, 0.1, numbers, numbers, {}).part(which)
    assert torch.equal(common.x, x[0])
    assert common.lr == 0.1


# client_step


def test_what_clients_keep() -> None:
    assert keeps(a.fedau()) == ()
    assert keeps(a.mifa()) == ()
    assert keeps(a.mifa(memory="client")) == (MEMORY,)
    assert keeps(a.scaffold()) == ("control",)
    both = replace(a.scaffold(), memory=a.mifa(memory="client").memory, beta=1.0)
    assert keeps(both) == (MEMORY, "control")


SENT = Broadcast(ONE, 0, 0.5, np.array([3.0, 0.5]), np.array([0.8, 1.2]), {})
# Clients at 0 and 4, from 8, half the way: −4 and −2; with their shares −3.2 and −2.4.


def test_without_memory_a_client_uploads_its_weighted_update() -> None:
    upload, kept = client_step(a.fedau(local=HALF), SENT, Pull((0, 4)), {})
    np.testing.assert_allclose(upload.update[:, 0], [3 * -3.2, 0.5 * -2.4])
    assert upload.weights.tolist() == [3, 0.5]
    assert upload.changes == kept == {}


def test_with_memory_at_the_server_it_uploads_the_plain_update() -> None:
    """The server weighs it after it has subtracted what it remembers."""
    upload, kept = client_step(a.fedvarp(local=HALF), SENT, Pull((0, 4)), {})
    np.testing.assert_allclose(upload.update[:, 0], [-3.2, -2.4])
    assert upload.weights.tolist() == [3, 0.5]
    assert upload.changes == kept == {}


@pytest.mark.parametrize("beta", [1.0, 0.25, 0.0])
def test_with_memory_of_its_own_it_subtracts_that_first(beta) -> None:
    algorithm = replace(a.mifa(memory="client", local=HALF), beta=beta)
    held = torch.tensor([[-1.0], [2.0]], dtype=torch.float64)
    upload, kept = client_step(algorithm, SENT, Pull((0, 4)), {MEMORY: held})
    np.testing.assert_allclose(
        upload.update[:, 0], [3 * (-3.2 + beta), 0.5 * (-2.4 - 2 * beta)], rtol=1e-14
    )
    np.testing.assert_allclose(upload.changes[MEMORY][:, 0], [-2.2, -4.4])
    np.testing.assert_allclose(kept[MEMORY][:, 0], [-3.2, -2.4])


def test_changes_of_shared_vectors_are_weighed_by_the_objectives_shares() -> None:
    """Or the mean control would belong to an objective of equal shares: SCAFFOLD would go there."""
    sent = SENT._replace(means={"control": torch.zeros(1, dtype=torch.float64)})
    own = torch.zeros(2, 1, dtype=torch.float64)
    upload, kept = client_step(a.scaffold(local=HALF), sent, Pull((0, 4)), {"control": own})
    np.testing.assert_allclose(kept["control"][:, 0], [8, 4])  # the clients' own gradients
    np.testing.assert_allclose(upload.changes["control"][:, 0], [0.8 * 8, 1.2 * 4])


# absorb and close


def test_delivery_is_participation_and_nothing_else_is() -> None:
    algorithm = a.fedau(cutoff=None)
    state = start(algorithm, ONE, 3)
    for came in ([0, 1], [0], [0]):
        announce(algorithm, state, rows(0, 1, 2))  # asking leaves no trace
        state = absorb(algorithm, state, rows(*came), uploaded(*[0.0] * len(came)))
        state = close(algorithm, state)
    assert state.seen.tolist() == [True, True, False]
    assert state.seen_count == 2
    state = absorb(algorithm, state, rows(1), uploaded(0.0))  # after two missed rounds
    state = close(algorithm, state)
    assert announce(algorithm, state, rows(0, 1, 2)).weights.tolist() == [1, 2, 1]


def test_close_moves_the_model_and_clears_the_round() -> None:
    algorithm = a.fedavg()
    state = start(algorithm, ONE, 3)
    state = absorb(algorithm, state, rows(0), uploaded(-4.0))
    state = absorb(algorithm, state, rows(2), uploaded(-2.0))
    assert tally_of(state) == (3, 2, 2, 0)
    assert scale(algorithm, state) == 1.5
    before = state.x
    state = close(algorithm, state)
    assert state.x.item() == 5
    assert before.item() == 8  # a new vector: whoever holds the old one keeps it
    assert (state.round, state.client_round, state.delivered) == (1, 1, 0)
    assert state.total.item() == 0
    assert close(algorithm, state).x.item() == 5  # nobody came


def test_weights_are_applied_once() -> None:
    algorithm = a.known([0.5, 0.25], local=HALF)
    state = start(algorithm, ONE, 2)
    upload, _ = client_step(algorithm, announce(algorithm, state, rows(0, 1)), Pull((0, 4)), {})
    state = close(algorithm, absorb(algorithm, state, rows(0, 1), upload))
    assert state.x.item() == 8 + (2 * -4 + 4 * -2) / 2


def test_memory_at_the_server_with_weights() -> None:
    """direction = β·h̄ + Σ ω_i (Δ_i − β·h_i)/D: FedStale's form, with β and ω of our own."""
    algorithm = replace(a.known([0.5, 0.25, 0.1]), memory=a.mifa().memory, beta=0.5)
    state = start(algorithm, torch.zeros(1, dtype=torch.float64), 3)
    first = uploaded(3.0, 6.0, weights=[2.0, 4.0])
    state = close(algorithm, absorb(algorithm, state, rows(0, 1), first))
    assert state.x.item() == (2 * 3 + 4 * 6) / 3
    second = uploaded(5.0, 1.0, weights=[4.0, 10.0])
    state = close(algorithm, absorb(algorithm, state, rows(1, 2), second))
    step = 0.5 * (3 + 6 + 0) / 3 + (4 * (5 - 0.5 * 6) + 10 * (1 - 0.5 * 0)) / 3
    assert state.x.item() == pytest.approx(10 + step, rel=1e-14)
    assert state.memory["table"][:, 0].tolist() == [3, 5, 1]
    assert state.memory["mean"].item() == pytest.approx(3)


def test_a_gate_loses_no_change_that_a_client_has_committed() -> None:
    """A second delivery in a window does not count for the model; what its client keeps does."""
    algorithm = replace(a.scaffold(), gate=a.wait_minibatch().gate)
    state = start(algorithm, ONE, 2)
    for change in (6.0, -2.0):
        state = absorb(algorithm, state, rows(0), uploaded(-1.0, control=[change]))
        state = close(algorithm, state)
    assert state.delivered == 1
    assert state.means["control"].item() == (6 - 2) / 2
    assert state.x.item() == 8


def test_a_gate_of_another_kind() -> None:
    """Half of the clients are enough, and the model moves by the mean over those who came."""
    half = Gate(lambda tally: tally.delivered >= tally.population / 2)
    algorithm = replace(a.fedavg(), gate=half)
    state = start(algorithm, ONE, 4)
    for row, expected in ((0, 8), (0, 8), (3, 5), (1, 5)):
        state = close(algorithm, absorb(algorithm, state, rows(row), uploaded(-4.0 + row * 2 / 3)))
        assert state.x.item() == pytest.approx(expected)


def test_amplification_ticks_on_a_round_without_clients_and_not_on_the_servers() -> None:
    algorithm = a.safari(0.5, 1, None, 0.5, a.amplified(2, 3.0, a.fedavg(local=HALF)))
    state = start(algorithm, ONE, 2)
    state = close(algorithm, absorb(algorithm, state, rows(0, 1), uploaded(-4.0, -2.0)))
    state = server_step(algorithm, state, Pull((1.0,)))
    assert state.x.item() == 3  # half the way from 5 to 1
    assert close(algorithm, state).x.item() == 3 - 2 * 3  # the window holds the clients' step only


# server_step


def test_a_server_round_is_plain_sgd_on_one_row() -> None:
    algorithm = a.safari(0.5, assistance_lr=0.25, inner=a.scaffold(local=HALF))
    state = start(algorithm, ONE, 2, np.array([0.9, 0.1]))
    state.means["control"] += 5
    state = server_step(algorithm, state, Pull((0.0,), taken=2))
    assert state.x.item() == 8 * 0.75**2
    assert (state.round, state.client_round) == (1, 0)
    assert state.seen_count == 0


def test_a_server_round_without_assistance() -> None:
    with pytest.raises(InputError, match="fedavg has no assistance, so the server does not train"):
        server_step(a.fedavg(), start(a.fedavg(), ONE, 2), Pull((0.0,)))


# weights along a mask

TRACE = [[1, 1], [1, 0], [0, 0], [0, 1], [0, 1]]


@pytest.mark.parametrize(
    ("method", "expected"),
    [
        (a.fedavg(), [[1, 1], [2, 2], [0, 0], [2, 2], [2, 2]]),
        (a.average_all(), [[1, 1]] * 5),
        (a.wait_minibatch(), [[1, 1]] * 5),
        (a.known([0.5, 0.25]), [[2, 4]] * 5),
        (a.fedau(cutoff=None), [[1, 1], [1, 1], [1, 1], [1, 1], [1, 2]]),
        (a.fedau(cutoff=2), [[1, 1], [1, 1], [1, 1], [1, 1.5], [4 / 3, 4 / 3]]),
        (a.mifa(), [[1, 1]] * 5),
        (a.mifa("seen"), [[1, 1]] * 5),
        (a.fedvarp(), [[1, 1], [2, 2], [0, 0], [2, 2], [2, 2]]),
        (a.scaffold(), [[1, 1], [2, 2], [0, 0], [2, 2], [2, 2]]),
        (a.amplified(3, 2.0, a.fedau(cutoff=None)), [[1, 1], [1, 1], [1, 1], [1, 1], [1, 2]]),
    ],
    ids=str,
)
def test_weights_by_hand(method, expected) -> None:
    np.testing.assert_allclose(turnout.weights(method, np.array(TRACE)), expected, rtol=1e-14)


def test_weights_of_mifa_depend_on_who_has_been_seen() -> None:
    trace = [[0, 0], [1, 0], [0, 1], [1, 1]]
    seen = turnout.weights(a.mifa("seen"), np.array(trace))
    assert seen.tolist() == [[0, 0], [2, 2], [1, 1], [1, 1]]
    wait = turnout.weights(a.mifa("wait"), np.array(trace))
    assert wait.tolist() == [[0, 0], [0, 0], [1, 1], [1, 1]]


@pytest.mark.parametrize(
    "method",
    [
        a.fedavg(local=HALF),
        a.average_all(local=HALF),
        a.known([0.9, 0.5, 0.3, 0.1], local=HALF),
        a.fedau(cutoff=3, local=HALF),
        a.fedau(cutoff=None, local=HALF),
        a.fedau(cutoff=4, decay=0.4, local=HALF),
        a.fedau(cutoff=3, groups=[0, 1, 1, 0], local=HALF),
    ],
    ids=str,
)
def test_weights_are_those_that_a_run_uses(method) -> None:
    """x_{t+1} = x_t + (1/N) Σ ω_t^n Δ_t^n, with the weights of `turnout.weights`."""
    draw = np.random.default_rng(0)
    mask, z = draw.random((30, 4)) < [0.9, 0.5, 0.3, 0.1], draw.normal(size=4)
    omega = turnout.weights(method, mask)
    x, expected = 2.0, []
    for t in range(30):
        x += float(np.sum(mask[t] * omega[t] * (z - x) / 2)) / 4
        expected.append(x)
    np.testing.assert_allclose(walk(method, z, mask, 2.0), expected, rtol=1e-11)


def test_weights_of_a_mask_that_is_none() -> None:
    with pytest.raises(InputError, match=r"mask has shape \(3,\); it must be \[rounds, clients\]"):
        turnout.weights(a.fedavg(), np.ones(3, dtype=bool))


def test_weights_leave_the_mask_alone_and_take_numbers() -> None:
    mask = np.array(TRACE)
    turnout.weights(a.fedau(), mask)
    assert mask.tolist() == TRACE
    assert turnout.weights(a.fedau(), mask[:0]).shape == (0, 2)
