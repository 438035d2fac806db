"""Secure aggregation: the server sees the sum, and the sum is all that these methods need."""

import numpy as np
import pytest
import torch
from flwr.app import Error, Message
from tests.conformance.cases import (
    CASES,
    DELIVERED,
    ROUNDS,
    classification,
    in_process,
    logistic,
)
from tests.flower.federations import (
    FakeTime,
    initial,
    names,
    nodes,
    own_data,
    server_data,
)

from turnout import InputError
from turnout.algorithms import ca_fed, fedau, fedbuff, fedvarp, fltrust, mifa, wait_minibatch
from turnout.flower import InProcessGrid, Rules, SecureAggregation, Strategy, client_app
from turnout.flower.packing import Packing
from turnout.parts.local import Local

FINE = SecureAggregation(clip=8.0, levels=2**28)
STEP = 2 * FINE.clip / FINE.levels
SUMS = [
    "fedavg, momentum",
    "known",
    "fedau",
    "fedau, groups",
    "amplified, fedau",
    "safari, scaffold",
]
SUMS += ["mifa, client-held", "mifa, seen, client-held"]
TRAINING, UNMASKING = 3, 4
"""Which of the protocol's four messages a client answers by training, and by giving up shares."""


class Watched(InProcessGrid):
    """Keeps every answer, and lets clients fall silent: `silent` holds (client, round, stage)."""

    def __init__(self, app, clients, silent=()):
        super().__init__(app, clients)
        self.silent, self.seen, self.count = set(silent), [], {}
        self.round = 0

    def handle(self, message: Message) -> Message:
        node = message.metadata.dst_node_id
        client = self.contexts[node].node_config["partition-id"]
        if message.metadata.message_type == "train":
            stage = self.count[client] = self.count.get(client, 0) % 4 + 1
            if (client, self.round, stage) in self.silent:
                self.count[client] = 0
                return Message(Error(5, "gone"), reply_to=message)
        answer = super().handle(message)
        self.seen.append((client, self.count.get(client, 0), answer))
        return answer


def federation(algorithm, world, settings=FINE, silent=(), load_data=None, **more):
    strategy = Strategy(
        algorithm,
        names(world),
        rules=Rules(min_round=0.0, start_with=6),
        model=logistic(),
        server_data=server_data(algorithm, world),
        shares=world.shares,
        secure=settings,
        clock=FakeTime().clock,
        **more,
    )
    data = load_data or own_data(world)
    app = client_app(algorithm, logistic(), data, secure=settings is not None)
    return strategy, Watched(app, nodes(6), silent)


def play(strategy, grid, rounds=ROUNDS):
    seen = []

    def look(number, arrays):
        grid.round = number + 1
        grid.count.clear()
        seen.append(Packing.of(arrays, logistic()).start)

    result = strategy.start(grid, initial(logistic()), rounds, evaluate_fn=look)
    return torch.stack(seen[1:]), result


def mask_of(silent, rounds, stage=TRAINING):
    mask = np.ones((rounds, 6), dtype=bool)
    for client, round, at in silent:
        if at <= stage:
            mask[round - 1, client] = False
    return mask


@pytest.mark.parametrize("case", SUMS)
def test_the_model_is_that_of_the_simulator_but_for_the_quantisation(case):
    world = classification(DELIVERED)
    found, _ = play(*federation(CASES[case], world, participation=world.participation), rounds=7)
    expected = torch.stack(in_process(CASES[case], world, logistic(), 7))
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-4)


@pytest.mark.parametrize("case", ["fedau", "mifa, client-held"])
def test_an_update_that_the_injected_mask_loses_is_in_no_sum(case):
    """What is in a sum could not be taken out again, so such a client is not asked for its upload."""
    asked = np.ones((4, 6), dtype=bool)
    arrived = mask_of([(2, 1, TRAINING), (4, 2, TRAINING), (2, 3, TRAINING)], 4)
    world = classification(arrived, asked)
    strategy, grid = federation(CASES[case], world, participation=world.participation)
    found, result = play(strategy, grid, rounds=4)
    expected = torch.stack(in_process(CASES[case], world, logistic(), 4))
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-4)
    delivered = [result.train_metrics_clientapp[n]["delivered"] for n in range(1, 5)]
    assert delivered == arrived.sum(1).tolist()


def test_one_round_is_off_by_the_quantisation_at_most():
    algorithm = fedau(local=Local(lr=0.3, steps=2, batch_size=None))
    for settings in (SecureAggregation(clip=4.0, levels=2**12), FINE):
        world = classification(np.ones((1, 6)))
        found, _ = play(*federation(algorithm, world, settings), rounds=1)
        plain = in_process(algorithm, world, logistic(), 1)[0]
        error = (found[0] - plain).abs().max()
        step = 2 * settings.clip / settings.levels
        assert 0 < error <= step  # η/N times 6 uploads, each off by less than a step


def test_the_server_is_sent_nothing_that_shows_a_single_update():
    """The vectors of an answer are gone, and the masked ones are as good as random."""
    algorithm = fedau(local=Local(lr=0.3, steps=2, batch_size=None))
    world = classification(np.ones((1, 6)))
    masked = []
    for _ in range(2):
        strategy, grid = federation(algorithm, world)
        play(strategy, grid, rounds=1)
        trained = [(c, a.content) for c, stage, a in grid.seen if stage == TRAINING]
        assert len(trained) == 6
        for _, content in trained:
            assert all(len(record) == 0 for record in content.array_records.values())
            assert set(content.config_records["fitres.metrics"]) == {
                "client",
                "round",
                "lost",
                "refused",
                "cut",
            }
        masked.append({c: vectors(content) for c, content in trained})
    for client in range(6):  # the same upload, masked twice
        first, second = (run[client] for run in masked)
        assert (first != second).mean() > 0.99
        # Uniform on 0 … 2³² − 1, where a bare upload would lie within 2²⁸.
        assert first.max() > 2**30
    # Yet their sum is the sum of the uploads: all that was unmasked.


def vectors(content) -> np.ndarray:
    from flwr.common import bytes_to_ndarray
    from flwr.common.secure_aggregation.secaggplus_constants import RECORD_KEY_CONFIGS, Key

    pieces = content.config_records[RECORD_KEY_CONFIGS][Key.MASKED_PARAMETERS]
    return np.concatenate([bytes_to_ndarray(piece).ravel() for piece in pieces])


@pytest.mark.parametrize("case", ["fedau", "mifa, client-held", "scaffold"])
@pytest.mark.parametrize("stage", [1, 2, TRAINING, UNMASKING])
def test_a_client_that_leaves_is_in_the_sum_if_it_has_sent_its_upload_and_else_not(case, stage):
    """Weights are the clients' own: an upload that is in no sum was no participation."""
    silent = [(2, 2, stage), (4, 3, stage), (0, 3, stage)]
    world = classification(mask_of(silent, 4))
    found, result = play(*federation(CASES[case], world, silent=silent), rounds=4)
    expected = torch.stack(in_process(CASES[case], world, logistic(), 4))
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-4)
    delivered = [result.train_metrics_clientapp[n]["delivered"] for n in range(1, 5)]
    assert delivered == mask_of(silent, 4).sum(1).tolist()


def test_with_too_few_to_the_end_a_round_has_no_sum_and_the_next_one_has():
    silent = [(n, 2, UNMASKING) for n in range(1, 6)]
    world = classification(np.array([[1] * 6, [0] * 6, [1] * 6]))
    found, result = play(*federation(CASES["fedau"], world, silent=silent), rounds=3)
    expected = torch.stack(in_process(CASES["fedau"], world, logistic(), 3))
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-5)
    assert result.train_metrics_clientapp[2]["delivered"] == 0


def test_a_client_that_diverges_says_so_and_adds_nothing():
    world = classification(np.ones((2, 6)))

    def load_data(context):
        pool = own_data(world)(context)
        if context.node_config["partition-id"] == 3:
            object.__setattr__(pool, "inputs", pool.inputs * float("nan"))
        return pool

    _, result = played = play(*federation(CASES["fedau"], world, load_data=load_data), rounds=2)
    mask = np.ones((2, 6), dtype=bool)
    mask[:, 3] = False
    expected = in_process(CASES["fedau"], classification(mask), logistic(), 2)
    torch.testing.assert_close(played[0], torch.stack(expected), rtol=0, atol=1e-5)
    assert any(key.startswith("refused: 3: ") for key in result.train_metrics_clientapp[1])


def test_numbers_that_the_sum_cannot_hold_are_counted():
    world = classification(np.ones((1, 6)))
    settings = SecureAggregation(clip=0.01, levels=2**20)
    _, result = play(*federation(CASES["fedau"], world, settings), rounds=1)
    assert result.train_metrics_clientapp[1]["secure-cut"] > 0
    _, result = play(*federation(CASES["fedau"], world, FINE), rounds=1)
    assert "secure-cut" not in result.train_metrics_clientapp[1]


def test_a_client_that_has_lost_its_memory_is_left_out_and_all_start_anew():
    world = classification(np.ones((5, 6)))
    algorithm = CASES["mifa, client-held"]
    strategy, grid = federation(algorithm, world)

    def look(number, arrays):
        if number == 3:
            grid.contexts[1000].state.clear()

    result = strategy.start(grid, initial(logistic()), 5, evaluate_fn=look)
    delivered = [result.train_metrics_clientapp[n]["delivered"] for n in range(1, 6)]
    assert delivered == [6, 6, 6, 5, 6]
    assert strategy._line.federation.progress.generation == 1


@pytest.mark.parametrize(
    ("algorithm", "sentence"),
    [
        (mifa(), "mifa keeps a table of clients' updates at the server"),
        (ca_fed(), "ca_fed goes by the loss that each client reports"),
        (fedbuff(), "fedbuff weighs every update by how late it is"),
        (fltrust(), "fltrust judges every update by the server's own"),
        (fedvarp(), "must see each of them; secure aggregation shows it only their sum"),
        (wait_minibatch(), "wait_minibatch counts each client once a window"),
    ],
)
def test_methods_that_need_single_updates_say_why_they_refuse(algorithm, sentence):
    with pytest.raises(InputError, match=sentence):
        Strategy(algorithm, 6, secure=FINE)


@pytest.mark.parametrize(
    ("population", "rules", "field"),
    [
        (None, {}, "population"),
        (6, {"norm_bound": 1.0}, "norm_bound"),
        (6, {"late_rounds": 1}, "late_rounds"),
        (6, {"quorum": 3}, "quorum"),
    ],
)
def test_what_secure_aggregation_does_not_go_with_is_refused(population, rules, field):
    with pytest.raises(InputError, match=f"{field} with secure aggregation"):
        Strategy(fedau(), population, rules=Rules(**rules), secure=FINE)


@pytest.mark.parametrize(
    ("population", "rules", "fits"),
    [(1024, {}, True), (1025, {}, False), (1025, {"per_round": 1024}, True)],
)
def test_more_clients_than_a_sum_can_hold_are_refused_before_the_first_round(
    population, rules, fits
):
    settings = SecureAggregation(levels=2**22)
    if fits:
        Strategy(fedau(), population, rules=Rules(**rules), secure=settings)
        return
    with pytest.raises(InputError, match=r"secure\.levels is 4194304; it must be at most 4190211"):
        Strategy(fedau(), population, rules=Rules(**rules), secure=settings)
