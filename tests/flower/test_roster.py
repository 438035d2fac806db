"""Who belongs to the federation: nodes change, names stay; newcomers, strangers, those who return."""

import logging

import numpy as np
import pytest
import torch
from flwr.app import Context, Error, Message, RecordDict
from tests.conformance.cases import CASES, classification, in_process, logistic
from tests.flower.faults import HANGS, FaultyGrid, slow
from tests.flower.federations import FakeTime, initial, names, nodes, own_data

from turnout import InputError
from turnout.algorithms import average_all, fedau, mifa, scaffold
from turnout.flower import Rules, Strategy, client_app
from turnout.flower.roster import Roster
from turnout.parts.local import Local

CLIENTS = 6
RULES = Rules(deadline=20.0, min_round=0.0)
EVERYBODY = np.ones((6, CLIENTS), dtype=bool)


class Field:
    """Clients may be added, removed and moved to other nodes between rounds (`then[round]`)."""

    def __init__(self, algorithm, population, present, then=None, rules=RULES, **more):
        self.world, self.time = classification(EVERYBODY), FakeTime()
        app = client_app(algorithm, logistic(), own_data(self.world))
        here = {
            node: config
            for node, config in nodes(CLIENTS).items()
            if config["partition-id"] in present
        }
        self.grid = FaultyGrid(app, here, self.time, {})
        self.then = then or {}
        self.strategy = Strategy(algorithm, population, rules=rules, clock=self.time.clock, **more)

    def run(self, rounds: int) -> "Field":
        seen = {}

        def between(number, arrays):
            seen[number] = torch.cat(
                [torch.from_numpy(a.numpy()).flatten() for a in arrays.values()]
            )
            self.then.get(number, lambda grid: None)(self.grid)

        self.result = self.strategy.start(
            self.grid, initial(logistic()), rounds, evaluate_fn=between
        )
        self.models = seen
        return self

    @property
    def federation(self):
        return self.strategy._line.federation

    def asked(self) -> list[int]:
        return [
            self.result.train_metrics_clientapp[n]["asked"]
            for n in self.result.train_metrics_clientapp
        ]


def comes(client: int, node: int):
    def change(grid: FaultyGrid) -> None:
        grid.contexts[node] = Context(
            1, node, {"partition-id": client, "num-partitions": CLIENTS}, RecordDict(), {}
        )

    return change


def moves(client: int, node: int):
    """A SuperNode without keys restarts: another id, and nothing left of what it kept."""

    def change(grid: FaultyGrid) -> None:
        old = next(n for n, c in grid.contexts.items() if c.node_config["partition-id"] == client)
        del grid.contexts[old]
        comes(client, node)(grid)

    return change


def test_rows_follow_the_names_given():
    field = Field(fedau(), [f"{n}" for n in (5, 3, 1, 0, 2, 4)], range(6)).run(1)
    assert field.federation.roster.rows["5"] == 0
    assert field.asked() == [6]


def test_a_client_that_comes_back_at_another_node_keeps_its_row_and_its_history():
    local = Local(lr=0.1, steps=2, batch_size=2)
    stays = Field(fedau(local=local), 6, range(6)).run(5)
    back = Field(fedau(local=local), 6, range(6), {2: moves(4, 55)}).run(5)
    # It is greeted as round 3 begins, and its answer is there at once here.
    assert back.asked() == [6, 6, 6, 6, 6]
    torch.testing.assert_close(back.models, stays.models, rtol=1e-12, atol=1e-13)


def test_a_client_that_moves_does_not_sit_out_what_its_old_node_owes():
    """Its old order could come late, but who has restarted will not answer it."""
    rules = Rules(deadline=20.0, min_round=0.0, late_rounds=2)
    field = Field(fedau(), 6, range(6), {2: moves(4, 55)}, rules)
    field.grid.faults[4, 2] = HANGS
    field.run(4)
    assert field.asked() == [6, 6, 6, 6]
    delivered = [m["delivered"] for m in field.result.train_metrics_clientapp.values()]
    assert delivered == [6, 5, 6, 6]


def test_and_a_late_answer_of_the_old_node_counts_for_nothing():
    rules = Rules(deadline=20.0, min_round=0.0, late_rounds=2)
    field = Field(fedau(), 6, range(6), {2: comes(4, 55)}, rules)
    field.grid.faults[4, 2] = slow(20.6)  # the old node lives on, and answers in round 3
    field.run(4)
    delivered = [m["delivered"] for m in field.result.train_metrics_clientapp.values()]
    assert delivered == [6, 5, 6, 6]
    assert field.federation.progress.delivered[4] == 3


def test_a_killed_node_that_still_seems_online_is_not_asked_once_its_client_is_elsewhere():
    def restarts(grid):
        grid.offline.clear()
        comes(4, 55)(grid)  # while node 972 still shows as online

    field = Field(fedau(), 6, range(6), {2: restarts}).run(4)
    last = [m.metadata.dst_node_id for m in field.grid.pushed if m.metadata.group_id == "3"]
    assert 55 in last
    assert 972 not in last
    assert len(last) == 6


@pytest.mark.parametrize("algorithm", [scaffold(), mifa(memory="client")])
def test_when_a_client_has_lost_what_it_kept_all_start_anew_and_the_mean_is_right(algorithm):
    field = Field(algorithm, 6, range(6), {3: moves(4, 55)}).run(6)
    progress = field.federation.progress
    assert progress.generation == 1
    name = "control" if algorithm.name == "scaffold" else "memory"
    means = (
        progress.server.means if name == "control" else {"memory": progress.server.memory["mean"]}
    )
    held = []
    for context in field.grid.contexts.values():
        rounds = context.state.config_records["turnout.rounds"]
        assert rounds["generation"] == 1
        held.append(context.state.array_records["turnout.pending"][name].numpy()[0])
    np.testing.assert_allclose(means[name].numpy(), np.mean(held, axis=0), rtol=1e-12, atol=1e-14)
    assert field.result.train_metrics_clientapp[4]["refused"] == 1
    assert [field.result.train_metrics_clientapp[n]["delivered"] for n in (3, 4, 5)] == [6, 5, 6]


# Population ---------------------------------------------------------------------------------------


def test_a_fixed_population_counts_those_who_have_not_come_yet():
    local = Local(lr=0.1, steps=2, batch_size=2)
    field = Field(fedau(local=local), 6, range(4), {3: comes(4, 55)}).run(5)
    mask = EVERYBODY[:5].copy()
    mask[:3, 4] = False
    mask[:, 5] = False
    expected = in_process(fedau(local=local), classification(mask), logistic(), 5)
    for number, x in enumerate(expected, 1):
        torch.testing.assert_close(field.models[number], x, rtol=1e-12, atol=1e-13)


def test_a_growing_population_counts_whoever_has_joined():
    """N is 4 for three rounds, then 5: exactly two simulations, one after the other."""
    local = Local(lr=0.1, steps=2, batch_size=2)
    field = Field(average_all(local=local), None, range(4), {3: comes(4, 55)}).run(5)
    assert field.federation.roster.size == 5
    assert len(field.federation.progress.server.seen) == 5
    before = in_process(average_all(local=local), cut(4), logistic(), 3)
    torch.testing.assert_close(field.models[3], before[-1], rtol=1e-12, atol=1e-13)
    assert not torch.allclose(
        field.models[5], in_process(average_all(local=local), cut(4), logistic(), 5)[-1]
    )


def cut(clients: int):
    from dataclasses import replace

    from tests.conformance.worlds import attendance

    whole = classification(EVERYBODY)
    return replace(
        whole,
        offsets=whole.offsets[: clients + 1],
        participation=attendance(EVERYBODY[:, :clients]),
    )


def test_a_newcomer_to_a_growing_population_has_missed_nothing():
    field = Field(fedau(cutoff=2), None, range(3), {4: comes(4, 55)}).run(6)
    weights = field.federation.progress.server.weight
    assert field.federation.algorithm.weight.weigh(weights, 6, np.arange(4)).tolist() == [
        1,
        1,
        1,
        1,
    ]
    fixed = Field(fedau(cutoff=2), 4, range(3), {4: comes(4, 55)}).run(6)
    weights = fixed.federation.progress.server.weight
    late = fixed.federation.algorithm.weight.weigh(weights, 6, np.arange(4))
    assert late[3] > 1  # there, it was absent for four rounds


@pytest.mark.parametrize("name", ["mifa", "mifa, client-held", "fedvarp", "scaffold"])
def test_means_over_a_growing_population_stay_means(name):
    field = Field(CASES[name], None, range(3), {2: comes(4, 55), 3: comes(5, 56)}).run(5)
    server = field.federation.progress.server
    assert len(server.seen) == 5
    if "table" in server.memory:
        np.testing.assert_allclose(
            server.memory["mean"], server.memory["table"].mean(0), rtol=1e-12, atol=1e-14
        )
        return
    kept = "control" if name == "scaffold" else "memory"
    mean = server.means[kept] if name == "scaffold" else server.memory["mean"]
    held = [
        c.state.array_records["turnout.pending"][kept].numpy()[0]
        for c in field.grid.contexts.values()
    ]
    np.testing.assert_allclose(mean.numpy(), np.mean(held, axis=0), rtol=1e-12, atol=1e-14)


def test_strangers_are_turned_away_from_a_full_population(caplog):
    with caplog.at_level(logging.WARNING, logger="flwr"):
        field = Field(fedau(), ["0", "1"], range(4)).run(2)
    assert field.asked() == [2, 2]
    assert "client '2'" in caplog.text
    assert "turned away" in caplog.text


def test_a_node_without_a_turnout_client_is_not_asked(caplog):
    field = Field(fedau(), 6, range(3))

    handle = field.grid.handle

    def refuse(message):
        if message.metadata.dst_node_id == 1000 and message.metadata.message_type != "train":
            raise_ = ValueError("No query function registered with name 'turnout'")
            return Message(Error(2, repr(raise_)), reply_to=message)
        return handle(message)

    field.grid.handle = refuse
    with caplog.at_level(logging.WARNING, logger="flwr"):
        field.run(2)
    assert field.asked() == [2, 2]
    assert "node 1000 does not give a name" in caplog.text


def test_a_client_that_crashed_when_it_was_greeted_is_greeted_again():
    """Its machine may just have been out of memory."""
    field, crashed = Field(fedau(), 6, range(3)), []
    handle = field.grid.handle

    def crash_once(message):
        if message.metadata.message_type != "train" and message.metadata.dst_node_id == 1000:
            crashed.append(message)
            if len(crashed) == 1:
                return Message(Error(8, "killed"), reply_to=message)
        return handle(message)

    field.grid.handle = crash_once
    field.run(3)
    assert len(crashed) == 2
    assert field.asked()[-1] == 3


def test_at_most_so_many_are_drawn_and_the_seed_decides_whom():
    rules = Rules(deadline=20.0, min_round=0.0, per_round=2)
    runs = [
        Field(fedau(), names(classification()), range(6), rules=rules, seed=s).run(4)
        for s in (1, 1, 2)
    ]
    whom = [
        [m.metadata.dst_node_id for m in r.grid.pushed if m.metadata.message_type == "train"]
        for r in runs
    ]
    assert runs[0].asked() == [2, 2, 2, 2]
    assert whom[0] == whom[1] != whom[2]


@pytest.mark.parametrize(
    ("population", "sentence"),
    [
        (0, "population is 0"),
        ([], "at least one name"),
        (["a", "b", "a"], "names 'a' twice"),
        ("abc", "population is 'abc'; it must be a number of clients, a list of their names"),
        (4.0, "population is 4.0"),
        (True, "population is True"),
    ],
)
def test_a_population_that_cannot_be_is_refused(population, sentence):
    with pytest.raises(InputError, match=sentence):
        Strategy(fedau(), population)


def test_a_mask_of_another_population_is_refused():
    field = Field(fedau(), 4, range(4), participation=classification().participation)
    with pytest.raises(InputError, match="participation is '6 clients'"):
        field.run(1)


def test_a_roster_hands_out_rows_in_order_and_only_once():
    roster = Roster.of(2)
    assert [roster.admit(name) for name in ("x", "y", "x", "z")] == [0, 1, 0, None]
    growing = Roster.of(None)
    assert [growing.admit(name) for name in ("x", "y", "x", "z")] == [0, 1, 0, 2]
    assert growing.size == 3


def test_a_registered_name_goes_before_the_one_that_a_client_says():
    from flwr.proto.node_pb2 import NodeInfo

    field = Field(fedau(), ["north", "1"], range(2))
    field.grid.get_nodes = lambda: [
        NodeInfo(node_id=1000, name="north"),  # its client calls itself 0
        NodeInfo(node_id=993),
    ]
    field.run(2)
    assert field.asked() == [2, 2]
    assert [m["delivered"] for m in field.result.train_metrics_clientapp.values()] == [2, 2]
    assert field.federation.roster.rows == {"north": 0, "1": 1}
