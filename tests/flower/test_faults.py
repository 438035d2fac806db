"""What goes wrong in the field: the round goes on, and what did not arrive leaves no trace."""

import logging
from dataclasses import replace

import numpy as np
import pytest
import torch
from tests.conformance.cases import CASES, classification, in_process, logistic
from tests.flower.faults import (
    HANGS,
    KILLED,
    LOST,
    RAISES,
    TRAIN_S,
    Fault,
    FaultyGrid,
    send,
    slow,
)
from tests.flower.federations import FakeTime, initial, names, nodes, own_data, trajectory

from turnout.flower import Rules, Strategy, client_app
from turnout.participation import load

CLIENTS, ROUNDS = 6, 4
EVERYBODY = np.ones((ROUNDS, CLIENTS), dtype=bool)
RULES = Rules(deadline=20.0, min_round=0.0, start_with=CLIENTS)


class Field:
    """Six clients, some faults, one strategy; `run` plays it and keeps what there is to see."""

    def __init__(self, folder, faults=None, case="fedau", rules=RULES, population=None, **more):
        self.folder, self.time = folder, FakeTime()
        self.world = classification(EVERYBODY)
        algorithm = CASES[case]
        app = client_app(algorithm, logistic(), own_data(self.world))
        self.grid = FaultyGrid(app, nodes(CLIENTS), self.time, faults or {})
        self.strategy = Strategy(
            algorithm,
            names(self.world) if population is None else population,
            rules=rules,
            directory=folder,
            clock=self.time.clock,
            **more,
        )

    def run(self, rounds=ROUNDS) -> "Field":
        arrays = initial(logistic())
        self.models = trajectory(self.strategy, self.grid, arrays, rounds)
        self.log = load(self.folder / "participation.csv")
        return self

    def replayed(self):
        """The simulator's trajectory for the participation that the log tells of."""
        world = classification(self.log.mask(), self.log.mask(cohort=True))
        case = next(name for name, a in CASES.items() if a is self.strategy.algorithm)
        return in_process(CASES[case], world, logistic(), self.log.rounds)

    def outcome(self, round: int, client: int) -> str:
        lines = (self.folder / "participation.csv").read_text().splitlines()
        (found,) = [line for line in lines if line.startswith(f"{round},{client},")]
        return found.split(",", 6)[6].strip('"')


def without(round: int, client: int):
    """Everybody's attendance, but for one."""
    mask = EVERYBODY.copy()
    mask[round, client] = False
    return mask


FAULTS = {
    "it raises": (RAISES, "its ClientApp raised an exception: RuntimeError: oh"),
    "it hangs": (HANGS, "did not answer before the deadline"),
    "its node is killed": (KILLED, "did not answer before the deadline"),
    "its node is known to be gone": (Fault(5.0, error=5, runs=False), "its node is gone"),
    "its answer gets lost": (LOST, "did not answer before the deadline"),
    "it is too late": (slow(20.5), "did not answer before the deadline"),
    "it sends NaN": (send(lambda u: u * float("nan")), "update with NaN"),
    "it sends infinity": (send(lambda u: u / 0), "update with infinite values"),
    "it sends another shape": (send(lambda u: u[1:]), "update of shape (14,), not (15,)"),
    "it sends another dtype": (send(lambda u: u.float()), "dtype torch.float32, not torch.float64"),
    "it answers for another round": (send(round=7), "for client round 7, not 1"),
    "it answers for another client": (send(client="5"), "from client '5', who was not asked"),
    "it sends more than it should": (
        send(also={"change.x": torch.ones(15)}),
        "client and server may run different algorithms",
    ),
    "it sends something else": (
        Fault(change=lambda content, order: type(content)()),
        "not an answer that turnout can read",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("case", ["fedau", "mifa", "mifa, client-held", "scaffold"])
def test_a_client_that_fails_is_absent_in_that_round_and_nothing_else(case, fault, tmp_path):
    """Not in the model, nor in memory, weights or control variates, nor at the client itself."""
    kind, reason = FAULTS[fault]
    field = Field(tmp_path, {(3, 2): kind}, case).run()
    np.testing.assert_array_equal(field.log.mask(), without(1, 3))
    assert field.log.mask(cohort=True).all()
    torch.testing.assert_close(field.models, field.replayed(), rtol=1e-12, atol=1e-13)
    assert reason in field.outcome(1, 3)


@pytest.mark.parametrize("fault", [name for name in FAULTS if "send" in name or "answers" in name])
def test_a_refusal_stands_in_the_log_and_in_the_metrics(fault, tmp_path, caplog):
    kind, reason = FAULTS[fault]
    field = Field(tmp_path, {(3, 2): kind})
    with caplog.at_level(logging.WARNING, logger="flwr"):
        result = field.strategy.start(field.grid, initial(logistic()), ROUNDS)
    metrics = result.train_metrics_clientapp[2]
    assert metrics["refused"] == 1
    assert any(key.startswith("refused: 3: ") and reason in key for key in metrics)
    assert any("client '3' is refused" in r.message and reason in r.message for r in caplog.records)
    assert result.train_metrics_clientapp[3]["refused"] == 0


def test_a_second_answer_is_refused_and_the_first_counts_once(tmp_path):
    field = Field(tmp_path, {(3, 2): Fault(twice=True)}).run()
    np.testing.assert_array_equal(field.log.mask(), EVERYBODY)
    torch.testing.assert_close(field.models, field.replayed(), rtol=1e-12, atol=1e-13)
    assert "refused: 3: a second answer" in (tmp_path / "metrics.jsonl").read_text()


def test_an_update_beyond_the_bound_is_refused_where_a_bound_is_set(tmp_path):
    faults = {(3, 2): send(lambda u: 1e6 * u)}
    bounded = Field(tmp_path / "a", faults, rules=Rules(deadline=20.0, min_round=0, norm_bound=1e3))
    assert "above the bound 1000" in bounded.run().outcome(1, 3)
    free = Field(tmp_path / "b", faults).run()
    assert free.outcome(1, 3) == "delivered"


# Time ---------------------------------------------------------------------------------------------


def test_without_faults_a_round_takes_as_long_as_its_slowest_client(tmp_path):
    field = Field(tmp_path).run()
    assert ROUNDS * TRAIN_S <= field.time.seconds < ROUNDS * TRAIN_S * 1.2


def test_a_client_that_hangs_costs_one_deadline_a_round(tmp_path):
    field = Field(tmp_path, {(3, r): HANGS for r in range(1, ROUNDS + 1)}).run()
    assert field.time.seconds == pytest.approx(ROUNDS * RULES.deadline, abs=0.1)
    assert field.log.mask()[:, 3].sum() == 0


@pytest.mark.parametrize("quorum", [5, 0.8])
def test_with_a_quorum_it_costs_nothing(quorum, tmp_path):
    rules = Rules(deadline=20.0, min_round=0, quorum=quorum, start_with=CLIENTS)
    field = Field(tmp_path, {(3, r): HANGS for r in range(1, ROUNDS + 1)}, rules=rules).run()
    assert field.time.seconds < ROUNDS * TRAIN_S * 1.2
    assert field.outcome(0, 3) == "was not waited for"


def test_who_hangs_is_not_asked_to_evaluate_either(tmp_path):
    """Or every evaluation would cost a deadline of its own."""
    faults = {(3, r): HANGS for r in (1, 2)} | {(3, 0): HANGS}  # 0: what is not an order
    field = Field(tmp_path, faults, evaluate_every=1).run(2)
    surveyed = [m for m in field.grid.pushed if m.metadata.message_type == "evaluate"]
    assert len(surveyed) == 2 * (CLIENTS - 1)
    assert field.time.seconds < 2 * (RULES.deadline + 2 * TRAIN_S)


def test_what_comes_at_the_last_moment_is_taken(tmp_path):
    field = Field(tmp_path, {(3, 2): slow(RULES.deadline)}).run()
    assert field.outcome(1, 3) == "delivered"


def test_a_federation_without_clients_ends(tmp_path):
    field = Field(tmp_path, rules=Rules(deadline=20.0, startup=30.0))
    field.grid.contexts.clear()
    field.run()
    assert field.log.rounds == ROUNDS
    assert field.time.seconds <= ROUNDS * 20.0 + 30.0
    assert torch.equal(field.models[-1], field.models[0])


def test_a_round_takes_its_least_time(tmp_path):
    field = Field(tmp_path, rules=Rules(deadline=20.0, min_round=7.0, start_with=CLIENTS)).run()
    assert field.time.seconds == pytest.approx(7.0 * ROUNDS, abs=0.1)


# Late updates -------------------------------------------------------------------------------------

LATE = Rules(deadline=20.0, min_round=0, quorum=5, late_rounds=1, start_with=CLIENTS)


def test_a_late_update_is_taken_in_the_next_round_where_late_rounds_allows(tmp_path):
    field = Field(tmp_path, {(3, 2): slow(1.5)}, rules=LATE).run()
    assert field.outcome(2, 3) == "late"
    assert field.outcome(1, 3) == "was not waited for"
    assert field.log.mask()[:, 3].tolist() == [True, False, True, True]
    # It owes an answer when round 3 begins, so it is not asked anew: five others deliver.
    trained = [m.metadata.group_id for m in field.grid.pushed if m.metadata.dst_node_id == 979]
    assert trained.count("2") == 1
    assert trained.count("3") == 0


def test_how_late_an_update_is_the_server_knows(tmp_path, monkeypatch):
    """FedBuff with a buffer of one moves in each round; what began a round ago is one version late."""
    found, buffered = [], CASES["fedbuff, one"]

    def noted(late):
        found.extend(late.tolist())
        return buffered.lateness(late)

    monkeypatch.setitem(CASES, "fedbuff, noted", replace(buffered, lateness=noted))
    field = Field(tmp_path, {(3, 2): slow(1.5)}, "fedbuff, noted", LATE).run()
    assert field.outcome(2, 3) == "late"
    assert found.count(1) == 1
    assert set(found) == {0, 1}


def test_and_refused_where_it_does_not(tmp_path):
    rules = Rules(deadline=20.0, min_round=0, quorum=5, start_with=CLIENTS)
    field = Field(tmp_path, {(3, 2): slow(1.5)}, rules=rules).run()
    assert field.outcome(1, 3) == "was not waited for"
    assert field.log.mask()[:, 3].tolist() == [True, False, True, True]
    torch.testing.assert_close(field.models, field.replayed(), rtol=1e-12, atol=1e-13)


def test_an_order_lives_as_long_as_its_answer_counts(tmp_path):
    field = Field(tmp_path).run()
    lives = [m.metadata.ttl for m in field.grid.pushed if m.metadata.message_type == "train"]
    assert max(lives) <= RULES.deadline + 2.0
    late = Field(tmp_path / "late", rules=LATE).run()
    lives = [m.metadata.ttl for m in late.grid.pushed if m.metadata.message_type == "train"]
    assert max(lives) == pytest.approx(2 * LATE.deadline + 2.0, abs=0.1)


@pytest.mark.parametrize("case", ["scaffold", "mifa, client-held"])
def test_late_changes_of_what_clients_keep_are_counted_once(case, tmp_path):
    """The server's mean is the mean of what clients hold, whoever was late."""
    faults = {(3, 2): slow(1.5), (1, 3): slow(1.5), (3, 4): slow(1.5)}
    field = Field(tmp_path, faults, case, LATE).run(6)
    name = "control" if case == "scaffold" else "memory"
    server = field.strategy._line.federation.progress.server
    mean = server.means[name] if case == "scaffold" else server.memory["mean"]
    held = []
    for context in field.grid.contexts.values():
        row = int(context.node_config["partition-id"])
        rounds = context.state.config_records["turnout.rounds"]
        accepted = field.strategy._line.federation.progress.accepted[row]
        which = "pending" if rounds["pending"] == accepted else "committed"
        assert rounds[which] == accepted
        held.append(context.state.array_records[f"turnout.{which}"][name].numpy()[0])
    np.testing.assert_allclose(mean.numpy(), np.mean(held, axis=0), rtol=1e-12, atol=1e-14)
