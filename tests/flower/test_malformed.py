"""Whatever a client writes, and whatever an order looks like: a refusal in a sentence, or a round.

Answers are built from good ones with pieces exchanged, bent or cut, or from nothing. What is taken
must be a finite vector of the right shape for the right round; all else leaves no trace.
"""

import io
import json
import tempfile
from copy import deepcopy
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest
import torch
from flwr.app import Array, ArrayRecord, ConfigRecord, Message, MetricRecord, RecordDict
from flwr.proto.node_pb2 import NodeInfo
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some
from tests.conformance.cases import CASES, classification, in_process, logistic
from tests.flower.federations import FakeTime, initial, names, nodes, own_data, trajectory

from turnout import InputError
from turnout.flower import InProcessGrid, Rules, SecureAggregation, Strategy, client_app, messages
from turnout.flower.federation import Federation
from turnout.flower.happened import Ask, Happened, mean_metrics
from turnout.flower.messages import Ticket
from turnout.flower.nodes import Greeting, Nodes
from turnout.flower.packing import record
from turnout.flower.roster import Roster
from turnout.flower.secure_answers import Form, read
from turnout.flower.validate import RefusedError
from turnout.participation import load

few_or_a_thousand = pytest.mark.parametrize(
    "inputs", [40, pytest.param(1000, marks=pytest.mark.slow)]
)


def tried(inputs: int, **what):
    """Run a check on so many inputs."""
    unhurried = settings(
        max_examples=inputs, deadline=None, suppress_health_check=list(HealthCheck)
    )
    return lambda check: unhurried(given(**what)(check))()


words = some.one_of(
    some.sampled_from(["client", "round", "lost", "update", "change.control", "turnout", "arrays"]),
    some.text(max_size=8),
)
scalars = some.one_of(
    some.integers(-(2**63), 2**63 - 1),
    some.floats(),
    some.booleans(),
    words,
    some.binary(max_size=9),
)
lists = some.one_of(some.lists(some.integers(-5, 5), max_size=3), some.lists(words, max_size=3))
configs = some.dictionaries(words, some.one_of(scalars, lists), max_size=4).map(ConfigRecord)
metrics = some.dictionaries(
    some.one_of(words, some.sampled_from(["num-examples", "delivered", "refused: 3: x"])),
    some.one_of(some.integers(-(2**63), 2**63 - 1), some.floats()),
    max_size=4,
).map(MetricRecord)


@some.composite
def arrays(draw):
    """Arrays that are what they say, and arrays that are not."""
    kind = draw(some.sampled_from(["f8", "f4", "i8", "c16", ">f8", "U3", "V0", "?", "M8[s]"]))
    shape = draw(some.sampled_from([(15,), (15, 1), (0,), (), (2**12,), (1, 15)]))
    good = Array(np.zeros(shape, dtype=kind))
    data = draw(
        some.one_of(
            some.just(good.data),
            some.binary(max_size=64),
            some.integers(0, 200).map(lambda end: good.data[:end]),
            some.binary(min_size=1, max_size=8).map(lambda junk: good.data[:9] + junk),
            some.sampled_from([b"PK\x03\x04" + bytes(40), b"PK\x05\x06" + bytes(18), b"\x80\x04."]),
            some.just(good.data.replace(b"(15,)", b"(10000000000000,)")),
        )
    )
    stype = draw(some.sampled_from(["numpy.ndarray", "pickle", ""]))
    return Array(dtype="float64", shape=(15,), stype=stype, data=data)


records = some.one_of(
    configs, metrics, some.dictionaries(words, arrays(), max_size=3).map(ArrayRecord)
)
NAMES = ["turnout", "update", "metrics", "arrays", "config", "turnout.means"]
VALUES = some.sampled_from([np.nan, np.inf, 1e300, 1e200, 1e-300, -0.0, 1.0])


@some.composite
def bent(draw, good: RecordDict) -> RecordDict:
    """A message's content with something done to it."""
    content = deepcopy(good)
    for _ in range(draw(some.integers(1, 3))):
        name = draw(some.sampled_from([*good, *NAMES]))
        match draw(some.sampled_from(["drop", "replace", "word", "vector", "number", "empty"])):
            case "drop":
                content.pop(name, None)
            case "replace":
                content[name] = draw(records)
            case "word" if isinstance(content.get(name), ConfigRecord) and content[name]:
                key = draw(some.sampled_from([*content[name]]))
                content[name][key] = draw(some.one_of(scalars, lists))
            case "vector" if isinstance(content.get(name), ArrayRecord) and content[name]:
                key = draw(some.sampled_from([*content[name], "more"]))
                content[name][key] = draw(arrays())
            case "number" if "update" in content.array_records:
                vector = torch.zeros(15, dtype=torch.float64)
                vector[draw(some.integers(0, 14))] = draw(VALUES)
                content["update"] = record({"update": vector})
            case "empty":
                content = RecordDict()
    return content


def answer_and_order(case: str):
    """What client 3 of this case answers to the first order, and the order."""
    world, seen = classification(), []
    grid = InProcessGrid(client_app(CASES[case], logistic(), own_data(world)), nodes(6))
    handle = grid.handle
    grid.handle = lambda message: seen.append((message, handle(message))) or seen[-1][1]
    strategy = Strategy(
        CASES[case], names(world), rules=Rules(min_round=0.0, start_with=6), clock=FakeTime().clock
    )
    strategy.start(grid, initial(logistic()), 1)
    order, answer = next(
        (order, answer)
        for order, answer in seen
        if order.metadata.message_type == "train" and order.metadata.dst_node_id == 979
    )
    return answer.content, order.content


def opened(case: str) -> Federation:
    """A federation before its first round."""
    strategy = Strategy(CASES[case], names(classification()))
    grid = InProcessGrid(None, {})
    return strategy._open(grid, initial(logistic())).federation


def asked(federation: Federation) -> Ask:
    """An order to client 3."""
    (ticket,) = federation.tickets(np.array([3]))
    return Ask(3, "3", "3", 979, federation.round, ticket, asked_at=1e9, expires=1e3)


FORM = Form(frozenset(nodes(6)), vectors=1, size=15)
GOOD = {case: answer_and_order(case) for case in ("fedau", "scaffold")}
ORDER = Message(RecordDict(), 979, "train")


class Bending(InProcessGrid):
    """In round 2 client 3 answers with something else."""

    instead: RecordDict | None = None

    def handle(self, message: Message) -> Message:
        answer = super().handle(message)
        client = self.contexts[message.metadata.dst_node_id].node_config["partition-id"]
        second = message.metadata.message_type == "train" and message.metadata.group_id == "2"
        if second and client == 3 and self.instead is not None:
            return Message(self.instead, reply_to=message)
        return answer


@few_or_a_thousand
def test_an_answer_is_taken_whole_or_leaves_nothing(inputs):
    taken = []

    @tried(inputs, data=some.data(), case=some.sampled_from(["fedau", "scaffold"]))
    def check(data, case):
        federation = opened(case)
        before = deepcopy(federation.progress)
        ask = asked(federation)
        happened = Happened(federation.round, "clients", asked={3: ask})
        content = data.draw(bent(GOOD[case][0]) | some.dictionaries(words, records).map(RecordDict))
        federation.take(ask, Message(content, reply_to=ORDER), happened, 1e9)
        progress, entry = federation.progress, happened.entries[3]
        taken.append(bool(happened.taken))
        if happened.taken:
            assert entry.outcome == "delivered"
            assert progress.delivered.tolist() == [0, 0, 0, 1, 0, 0]
            federation.end(happened)
            federation.require_finite()
        else:
            assert entry.outcome.isprintable()
            assert happened.refused == [f"3: {entry.outcome}"]
            torch.testing.assert_close(asdict(progress), asdict(before), rtol=0, atol=0)
        told = happened.metrics()
        json.dumps(dict(told), allow_nan=False)
        assert (told["asked"], told["delivered"]) == (1, len(happened.taken))

    assert set(taken) == {True, False}


@few_or_a_thousand
def test_a_node_gives_a_name_of_one_line_or_none(inputs):
    @tried(inputs, content=bent(messages.name_tag("ann")) | words.map(messages.name_tag))
    def check(content):
        found, roster = Nodes(), Roster.of(None)
        found.see([NodeInfo(node_id=7)])
        found.answer(Greeting(7, expires=1e3), Message(content, reply_to=ORDER))
        found.enrol(roster)
        assert roster.names == sorted(found.names)
        assert all(name.isprintable() and 0 < len(name) <= 100 for name in roster.names)


@few_or_a_thousand
def test_an_order_is_read_or_refused_in_a_sentence(inputs):
    sentences = []

    @tried(inputs, data=some.data(), case=some.sampled_from(["fedau", "scaffold"]))
    def check(data, case):
        content = data.draw(bent(GOOD[case][1]))
        try:
            ticket, named, means = messages.read_order(content)
        except InputError as error:
            sentences.append(str(error))
            return
        assert [type(value) for value in ticket] == list(Ticket.__annotations__.values())
        assert {type(tensor) for tensor in (*named.values(), *means.values())} <= {torch.Tensor}

    assert sentences
    assert all(sentence.isprintable() for sentence in sentences)


@pytest.mark.parametrize("kind", ["|V0", "|S0", "<U0"])
def test_items_of_no_bytes_are_refused_however_many_a_header_says_there_are(kind):
    """Copying them would take for ever: a fuzzed header had 2^40 of them."""
    data, shape = io.BytesIO(), (2**31,)
    header = {"descr": kind, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(data, header)
    array = Array(dtype=kind, shape=shape, stype="numpy.ndarray", data=data.getvalue())
    content = deepcopy(GOOD["fedau"][1])
    content["arrays"] = ArrayRecord({"1.bias": array})
    with pytest.raises(InputError, match="and not of numbers"):
        messages.read_order(content)


@settings(max_examples=10, deadline=None)
@given(content=bent(GOOD["fedau"][0]))
def test_the_round_goes_on_and_the_log_tells_what_counted(content):
    world, case = classification(np.ones((3, 6), dtype=bool)), "fedau"
    grid = Bending(client_app(CASES[case], logistic(), own_data(world)), nodes(6))
    grid.instead = content
    with tempfile.TemporaryDirectory() as folder:
        strategy = Strategy(
            CASES[case],
            names(world),
            rules=Rules(min_round=0.0, start_with=6),
            directory=folder,
            clock=FakeTime().clock,
        )
        models = trajectory(strategy, grid, initial(logistic()), 3)
        log = load(Path(folder) / "participation.csv")
        lines = (Path(folder) / "metrics.jsonl").read_text().splitlines()
    assert [json.loads(line)["round"] for line in lines] == [1, 2, 3]
    assert log.mask(cohort=True).all()
    assert log.mask().sum() >= 17
    assert all(bool(torch.isfinite(x).all()) for x in models)
    if not log.mask().all():
        without = classification(log.mask(), log.mask(cohort=True))
        expected = in_process(CASES[case], without, logistic(), 3)
        torch.testing.assert_close(models, expected, rtol=1e-9, atol=1e-11)


def test_metrics_that_clients_report_stay_numbers():
    pairs = [(3, 1.0), (float("nan"), 9.0), (-2, 9.0), (0, 9.0), (10**400, 9.0), (1, 5.0)]
    reported = [MetricRecord({"num-examples": n, "loss": loss}) for n, loss in pairs]
    assert dict(mean_metrics(reported)) == {"loss": 2.0}
    assert dict(mean_metrics([MetricRecord({"num-examples": 2, "loss": 1e308})] * 3)) == {}


# Secure aggregation -------------------------------------------------------------------------------


class Bent(InProcessGrid):
    """In one stage of round 2 client 3 answers with something else."""

    stage: int
    instead: RecordDict | None = None

    def __init__(self, app, clients):
        super().__init__(app, clients)
        self.said: list[Message] = []

    def handle(self, message: Message) -> Message:
        answer = super().handle(message)
        if message.metadata.dst_node_id != 979 or message.metadata.message_type != "train":
            return answer
        self.said.append(deepcopy(answer))
        spoilt = self.instead is not None and len(self.said) == 4 + self.stage + 1
        return Message(self.instead, reply_to=message) if spoilt else answer


def secure_run(rounds: int, stage: int = 0, instead: RecordDict | None = None):
    world = classification(np.ones((rounds, 6), dtype=bool))
    strategy = Strategy(
        CASES["fedau"],
        names(world),
        rules=Rules(min_round=0.0, start_with=6),
        secure=SecureAggregation(),
        clock=FakeTime().clock,
    )
    app = client_app(CASES["fedau"], logistic(), own_data(world), secure=True)
    grid = Bent(app, nodes(6))
    grid.stage, grid.instead = stage, instead
    result = strategy.start(grid, initial(logistic()), rounds)
    return grid, [result.train_metrics_clientapp[n]["delivered"] for n in range(1, rounds + 1)]


STAGES = [answer.content for answer in secure_run(1)[0].said]


def test_good_answers_to_secure_aggregation_are_read():
    ask = asked(opened("fedau"))
    for stage in range(4):
        read(stage, Message(STAGES[stage], reply_to=ORDER), ask, FORM)


@few_or_a_thousand
def test_an_answer_to_secure_aggregation_is_read_or_refused(inputs):
    sentences = []

    @tried(inputs, data=some.data(), stage=some.integers(0, 3))
    def check(data, stage):
        content = data.draw(bent(STAGES[stage]))
        try:
            read(stage, Message(content, reply_to=ORDER), asked(opened("fedau")), FORM)
        except RefusedError as refusal:
            sentences.append(str(refusal))

    assert sentences
    assert all(sentence.isprintable() for sentence in sentences)


@settings(max_examples=6, deadline=None)
@given(data=some.data(), stage=some.integers(0, 3))
def test_a_spoilt_stage_costs_a_client_or_a_round_and_not_the_run(data, stage):
    _, delivered = secure_run(3, stage, data.draw(bent(STAGES[stage])))
    assert delivered[0] == delivered[2] == 6
    assert delivered[1] in (0, 5, 6)
