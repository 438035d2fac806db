"""Whatever happens in the field, the log tells what counted, and the simulator confirms it."""

import tempfile
from pathlib import Path

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as some
from tests.conformance.cases import CASES, classification, in_process, logistic
from tests.flower.faults import HANGS, KILLED, LOST, RAISES, Fault, FaultyGrid, send, slow
from tests.flower.federations import FakeTime, initial, names, nodes, own_data, trajectory

from turnout.flower import Rules, Strategy, client_app
from turnout.participation import load

CLIENTS, ROUNDS = 6, 5

faults = some.one_of(
    some.sampled_from(
        [Fault(), HANGS, KILLED, LOST, RAISES, Fault(twice=True), send(lambda u: u * torch.nan)]
    ),
    some.floats(0, 30).map(slow),
)
fields = some.dictionaries(
    some.tuples(some.integers(0, CLIENTS - 1), some.integers(1, ROUNDS)), faults, max_size=20
)
quorums = some.one_of(some.none(), some.integers(1, 6), some.floats(0.1, 0.9))


@settings(max_examples=40)
@given(
    field=fields,
    quorum=quorums,
    min_round=some.floats(0, 5),
    case=some.sampled_from(
        ["fedau", "fedvarp", "mifa, client-held", "scaffold", "amplified, fedau"]
    ),
)
def test_the_trajectory_is_the_simulators_for_the_mask_in_the_log(field, quorum, min_round, case):
    """Right number of rounds, within their deadlines, nothing counted twice, nothing lost."""
    everybody = np.ones((ROUNDS, CLIENTS), dtype=bool)
    world, time, algorithm = classification(everybody), FakeTime(), CASES[case]
    grid = FaultyGrid(client_app(algorithm, logistic(), own_data(world)), nodes(6), time, field)
    rules = Rules(deadline=10.0, min_round=min_round, quorum=quorum, start_with=6, startup=5.0)
    with tempfile.TemporaryDirectory() as folder:
        strategy = Strategy(
            algorithm, names(world), rules=rules, directory=folder, clock=time.clock
        )
        models = trajectory(strategy, grid, initial(logistic()), ROUNDS)
        log = load(Path(folder) / "participation.csv")
    assert log.rounds == ROUNDS
    assert time.seconds <= ROUNDS * rules.deadline + rules.startup + 1e-6
    replay = classification(log.mask(), log.mask(cohort=True))
    expected = in_process(algorithm, replay, logistic(), ROUNDS)
    torch.testing.assert_close(models, expected, rtol=1e-9, atol=1e-11)
    assert strategy._line.federation.progress.delivered.tolist() == log.mask().sum(0).tolist()


@settings(max_examples=25)
@given(field=fields, quorum=quorums, late=some.integers(1, 2))
def test_late_updates_count_once_and_never_twice_in_a_round(field, quorum, late):
    everybody = np.ones((ROUNDS, CLIENTS), dtype=bool)
    world, time, algorithm = classification(everybody), FakeTime(), CASES["fedau"]
    trained = []
    grid = FaultyGrid(client_app(algorithm, logistic(), own_data(world)), nodes(6), time, field)
    rules = Rules(deadline=10.0, min_round=0, quorum=quorum, late_rounds=late, start_with=6)
    handle = grid.handle
    grid.handle = lambda message: trained.append(message) or handle(message)
    with tempfile.TemporaryDirectory() as folder:
        strategy = Strategy(
            algorithm, names(world), rules=rules, directory=folder, clock=time.clock
        )
        trajectory(strategy, grid, initial(logistic()), ROUNDS)
        log = load(Path(folder) / "participation.csv")  # refuses a client twice in a round
    progress = strategy._line.federation.progress
    assert progress.delivered.tolist() == log.mask().sum(0).tolist()
    runs = [m.metadata.dst_node_id for m in trained if m.metadata.message_type == "train"]
    for node, config in nodes(6).items():
        assert progress.delivered[config["partition-id"]] <= runs.count(node)
    assert time.seconds <= ROUNDS * rules.deadline + 60.0
