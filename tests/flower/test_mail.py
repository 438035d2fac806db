"""Pulling answers: Flower waits for uploads that have begun; a round does not."""

import threading
import time
from collections.abc import Iterable
from itertools import pairwise

import pytest
from flwr.app import Error, Message
from tests.conformance.cases import CASES, classification, logistic
from tests.flower.federations import initial, names, nodes, own_data

from turnout.flower import InProcessGrid, Rules, Strategy, client_app
from turnout.flower.clock import Clock

STUCK = "3"


class SlowUploads(InProcessGrid):
    """As Flower's: a pull claims what has been announced, and waits until it is all there.

    Client 3 announces its first update 0.3 s after the others; the rest follows after `takes`.
    """

    def __init__(self, app, clients, takes: float) -> None:
        super().__init__(app, clients)
        self.takes, self.announced = takes, {}
        self.claimed, self.orders = set(), {}

    def push_messages(self, outgoing: Iterable[Message]) -> list[str]:
        outgoing = list(outgoing)
        numbers = super().push_messages(outgoing)
        for number, message in zip(numbers, outgoing, strict=True):
            self.orders[number] = message
            client = str(self.contexts[message.metadata.dst_node_id].node_config["partition-id"])
            if client == STUCK and message.metadata.group_id == "1":
                self.announced[number] = time.monotonic() + 0.3
        return numbers

    def pull_messages(self, message_ids: Iterable[str]) -> list[Message]:
        now = time.monotonic()
        ready = [n for n in message_ids if self.announced.get(n, 0.0) <= now]
        gone = [n for n in ready if n in self.claimed]
        claimed = [self.answers.pop(n) for n in ready if n in self.answers]
        self.claimed |= {answer.metadata.reply_to_message_id for answer in claimed}
        if any(answer.metadata.reply_to_message_id in self.announced for answer in claimed):
            time.sleep(self.takes)
        return claimed + [Message(Error(3, "gone"), reply_to=self.orders[n]) for n in gone]


def play(folder, takes: float, **rules):
    world, algorithm = classification(), CASES["fedau"]
    grid = SlowUploads(client_app(algorithm, logistic(), own_data(world)), nodes(6), takes)
    settings = Rules(**{"deadline": 1.5, "min_round": 0.0, "start_with": 6, **rules})
    strategy = Strategy(algorithm, names(world), rules=settings, directory=folder, clock=Clock())
    ends = []
    strategy.start(
        grid, initial(logistic()), 3, evaluate_fn=lambda *_: ends.append(time.monotonic())
    )
    outcomes = {}
    for line in (folder / "participation.csv").read_text().splitlines()[1:]:
        if not line.startswith("#"):
            round, client, *_, outcome = line.split(",")
            outcomes[int(round), client] = outcome
    return [after - before for before, after in pairwise(ends)], outcomes


def test_a_client_that_dies_in_the_middle_of_its_upload_costs_one_deadline(tmp_path):
    seconds, outcomes = play(tmp_path, takes=30.0)
    assert seconds[0] < 1.5 + 1.0 + 0.15 + 1.0  # the deadline, a poll, its grace, and training
    assert outcomes[0, STUCK] == "did not answer before the deadline"
    assert sum(outcome == "delivered" for outcome in outcomes.values()) == 3 * 6 - 1
    assert max(seconds[1:]) < 4.0  # the pull that waits for it is in nobody's way


def test_an_upload_that_takes_its_time_comes_in_late_where_that_is_allowed(tmp_path):
    _, outcomes = play(tmp_path, takes=1.2, late_rounds=1, quorum=5, min_round=1.0)
    assert outcomes[1, STUCK] == "late"


class Failing(InProcessGrid):
    """Every second pull fails, or all of them, though no answer is lost."""

    pulls, every = 0, 2

    def pull_messages(self, message_ids):
        self.pulls += 1
        if self.pulls % self.every == 0:
            raise ValueError("Unexpected set of `children`.\x1b\nExpected more")
        return super().pull_messages(message_ids)


@pytest.mark.parametrize("every", [2, 1])
def test_what_flower_cannot_hand_over_does_not_end_the_run_until_nothing_comes(every, caplog):
    world, algorithm = classification(), CASES["fedau"]
    grid = Failing(client_app(algorithm, logistic(), own_data(world)), nodes(6))
    grid.every = every
    strategy = Strategy(algorithm, names(world), rules=Rules(deadline=5.0, min_round=0.0))
    if every == 1:
        with pytest.raises(ValueError, match="Unexpected set"):
            strategy.start(grid, initial(logistic()), 3)
        assert grid.pulls == 3
        return
    result = strategy.start(grid, initial(logistic()), 3)
    assert [m["delivered"] for m in result.train_metrics_clientapp.values()] == [6, 6, 6]
    assert "answers that Flower cannot hand over (ValueError: Expected more)" in caplog.text


def test_no_thread_outlives_its_pull(tmp_path):
    before = threading.active_count()
    play(tmp_path, takes=0.0)
    assert threading.active_count() == before
