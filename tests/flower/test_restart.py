"""A ServerApp may be killed at any moment: the next one goes on, and nothing is counted twice."""

import json
from importlib import import_module

import numpy as np
import pytest
import torch
from tests.conformance.cases import ASKED, CASES, DELIVERED, ROUNDS, classification, logistic
from tests.flower.federations import (
    FakeTime,
    initial,
    names,
    nodes,
    on_flower,
    own_data,
    server_data,
    trajectory,
)

from turnout import InputError, checkpoint
from turnout.algorithms import fedau, fedavg
from turnout.flower import InProcessGrid, Rules, Strategy, client_app
from turnout.participation import given, load


class Killed(BaseException):
    """As a signal would, it passes every `except Exception`."""


class Mortal(InProcessGrid):
    """Its server dies at the call number `dies_at` of pushing or pulling."""

    dies_at = 10**9
    calls = 0

    def _live(self) -> None:
        self.calls += 1
        if self.calls == self.dies_at:
            raise Killed

    def push_messages(self, messages):
        self._live()
        return super().push_messages(messages)

    def pull_messages(self, message_ids):
        self._live()
        return super().pull_messages(message_ids)


def strategy(case, folder, world, **more) -> Strategy:
    algorithm = CASES[case]
    settings = {
        "rules": Rules(min_round=0.0, start_with=world.clients),
        "model": logistic(),
        "server_data": server_data(algorithm, world),
        "participation": world.participation,
        "directory": folder,
        "clock": FakeTime().clock,
    }
    return Strategy(algorithm, names(world), **{**settings, **more})


def grid(case, world) -> Mortal:
    return Mortal(client_app(CASES[case], logistic(), own_data(world)), nodes(world.clients))


def unbroken(case) -> torch.Tensor:
    return torch.stack(on_flower(CASES[case], classification(asked=ASKED), logistic(), ROUNDS))


@pytest.mark.parametrize("case", CASES)
def test_killed_again_and_again_a_federation_ends_where_it_would_have_without(case, tmp_path):
    """The clients live on. Killed in mid-round and between rounds, at calls 4, 5 and 6."""
    world = classification(asked=ASKED)
    field, lives, last = grid(case, world), 0, None
    for lives in range(1, 40):
        field.dies_at = field.calls + 4 + lives % 3
        try:
            last = trajectory(strategy(case, tmp_path, world), field, initial(logistic()), ROUNDS)
            break
        except Killed:
            continue
    assert last is not None
    if case.split(",")[0] not in ("server_only", "centralised"):
        assert lives > 2
    found = checkpoint.load(tmp_path / "checkpoints")
    torch.testing.assert_close(found.tree["server"]["x"], unbroken(case)[-1], rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize(
    "moment", ["before the log", "before the metrics", "before the checkpoint"]
)
def test_killed_while_writing_down_a_round_it_writes_it_down_once(moment, tmp_path, monkeypatch):
    world, case = classification(asked=ASKED), "fedau"
    field = grid(case, world)
    target = {
        "before the log": "turnout.flower.participation_log.append",
        "before the metrics": "turnout.flower.store._append",
        "before the checkpoint": "turnout.checkpoint.save",
    }[moment]
    with monkeypatch.context() as patch:
        times = []

        def dies(*args, **kwargs):
            times.append(None)
            if len(times) == 4:
                raise Killed
            return original(*args, **kwargs)

        module, _, name = target.rpartition(".")
        original = getattr(import_module(module), name)
        patch.setattr(target, dies)
        with pytest.raises(Killed):
            trajectory(strategy(case, tmp_path, world), field, initial(logistic()), ROUNDS)
    rest = trajectory(strategy(case, tmp_path, world), field, initial(logistic()), ROUNDS)
    assert len(rest) == ROUNDS - 3
    torch.testing.assert_close(rest[-1], unbroken(case)[-1], rtol=1e-9, atol=1e-11)
    log = load(tmp_path / "participation.csv")
    np.testing.assert_array_equal(log.mask(), DELIVERED)
    np.testing.assert_array_equal(log.mask(cohort=True), ASKED)
    lines = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    assert [line["round"] for line in lines] == list(range(1, ROUNDS + 1))


@pytest.mark.parametrize("case", ["fedau", "mifa", "amplified", "safari, fedau", "scaffold"])
def test_a_new_run_finds_new_clients_states_and_goes_on(case, tmp_path):
    """`flwr run` after a crash is a new run: what clients keep is gone unless the server has it."""
    world = classification(asked=ASKED)
    trajectory(strategy(case, tmp_path, world), grid(case, world), initial(logistic()), 5)
    result = strategy(case, tmp_path, world).start(
        grid(case, world), initial(logistic(), seed=99), ROUNDS
    )
    assert sorted(result.train_metrics_clientapp) == list(range(1, ROUNDS + 1))
    found = checkpoint.load(tmp_path / "checkpoints")
    assert found.tree["server"]["round"] == ROUNDS
    if case == "scaffold":
        assert found.tree["generation"] == 1
    else:
        expected = unbroken(case)[-1]
        torch.testing.assert_close(found.tree["server"]["x"], expected, rtol=1e-9, atol=1e-11)


def test_two_runs_do_not_write_to_one_folder(tmp_path, monkeypatch):
    """Who stops looking at a run's log has not stopped the run, and soon starts another."""
    monkeypatch.setattr("turnout.flower.store._PATIENCE", 0.0)
    world, field = classification(asked=ASKED), None

    def second(number, arrays):
        if number == 2:
            with pytest.raises(InputError, match=r"is in use by process \d+; .*flwr stop"):
                strategy("fedau", tmp_path, world).start(field, initial(logistic()), ROUNDS)

    field = grid("fedau", world)
    first = strategy("fedau", tmp_path, world)
    first.start(field, initial(logistic()), 4, evaluate_fn=second)
    assert load(tmp_path / "participation.csv").rounds == 4
    strategy("fedau", tmp_path, world).start(field, initial(logistic()), 5)  # it is free again


def test_a_finished_federation_is_not_played_on(tmp_path):
    world = classification(asked=ASKED)
    trajectory(strategy("fedau", tmp_path, world), grid("fedau", world), initial(logistic()), 4)
    field = grid("fedau", world)
    strategy("fedau", tmp_path, world).start(field, initial(logistic()), 4)
    assert field.calls == 0


def test_the_log_replays_in_the_simulator(tmp_path):
    world = classification(asked=ASKED)
    trajectory(strategy("fedau", tmp_path, world), grid("fedau", world), initial(logistic()), 10)
    replay = given(str(tmp_path / "participation.csv"))
    np.testing.assert_array_equal(replay.mask(ROUNDS), DELIVERED)
    np.testing.assert_array_equal(replay.mask(ROUNDS, cohort=True), ASKED)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"algorithm": fedavg()}, "algorithm of the checkpoint"),
        ({"seed": 5}, "seed of the checkpoint"),
        ({"population": 9}, "population is 9; it must be 6"),
        ({"population": ["5", "4", "3", "2", "1", "0"]}, "names in population"),
        ({"population": ["a", "b", "c", "d", "e", "f"]}, "the checkpoint knows"),
    ],
)
def test_another_federations_folder_is_refused(change, sentence, tmp_path):
    world = classification(asked=ASKED)
    trajectory(strategy("fedau", tmp_path, world), grid("fedau", world), initial(logistic()), 2)
    settings = {"algorithm": fedau(), "population": names(world), **change}
    other = Strategy(**settings, directory=tmp_path, clock=FakeTime().clock)
    with pytest.raises(InputError, match=sentence):
        other.start(grid("fedau", world), initial(logistic()), 4)
