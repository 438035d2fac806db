"""The strategy as a Flower app meets it: its own loop, Flower's loop, evaluation, bad settings."""

import subprocess
import sys
from collections import OrderedDict

import numpy as np
import pytest
import torch
from flwr.app import ArrayRecord, ConfigRecord, MetricRecord
from flwr.serverapp.strategy import Strategy as FlowerStrategy
from tests.conformance.cases import (
    ASKED,
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
    trajectory,
)
from torch import nn

from turnout import InputError, checkpoint
from turnout.algorithms import f3ast, fedau, fedavg, safari
from turnout.data.pool import Pool
from turnout.flower import InProcessGrid, Rules, Strategy, client_app
from turnout.flower.happened import mean_metrics
from turnout.flower.packing import Packing, record
from turnout.models import Model
from turnout.participation import arrivals
from turnout.parts.local import Local


def setting(case="fedau", **more):
    world = classification(asked=ASKED)
    algorithm = CASES[case]
    strategy = Strategy(
        algorithm,
        names(world),
        rules=Rules(min_round=0.0, start_with=6),
        model=logistic(),
        server_data=server_data(algorithm, world),
        participation=world.participation,
        clock=FakeTime().clock,
        **more,
    )
    app = client_app(algorithm, logistic(), own_data(world))
    return strategy, InProcessGrid(app, nodes(6)), world


@pytest.mark.parametrize("case", ["fedau", "mifa", "safari, scaffold", "amplified, mifa"])
def test_flowers_own_loop_gives_the_same_numbers(case):
    """As wrappers around strategies use it. A round in which nobody is asked returns at once."""
    strategy, grid, world = setting(case)
    seen = {}
    FlowerStrategy.start(
        strategy,
        grid,
        initial(logistic()),
        ROUNDS,
        evaluate_fn=lambda n, arrays: seen.update({n: Packing.of(arrays, logistic()).start}),
    )
    expected = in_process(CASES[case], world, logistic(), ROUNDS)
    torch.testing.assert_close(list(seen.values())[1:], expected, rtol=1e-9, atol=1e-11)


def test_the_result_holds_the_final_model_and_what_happened_in_each_round():
    strategy, grid, world = setting()
    result = strategy.start(grid, initial(logistic()), ROUNDS)
    final = in_process(CASES["fedau"], world, logistic(), ROUNDS)[-1]
    torch.testing.assert_close(Packing.of(result.arrays).start, final, rtol=1e-9, atol=1e-11)
    metrics = result.train_metrics_clientapp
    assert [metrics[n]["asked"] for n in metrics] == ASKED.sum(1).tolist()
    assert [metrics[n]["delivered"] for n in metrics] == DELIVERED.sum(1).tolist()
    assert (
        metrics[5]["weight-max"] == 3.0
    )  # the cutoff, of the client that comes for the first time


def test_clients_evaluate_the_model_when_it_is_due():
    strategy, grid, world = setting(evaluate_every=4)
    result = strategy.start(grid, initial(logistic()), ROUNDS)
    found = result.evaluate_metrics_clientapp
    assert sorted(found) == [4, 8]
    x = in_process(CASES["fedau"], world, logistic(), 8)[-1]
    weight, bias = x[:12].reshape(3, 4), x[12:]
    loss = nn.functional.cross_entropy(world.train.inputs @ weight.T + bias, world.train.targets)
    assert found[8]["test_loss"] == pytest.approx(float(loss), rel=1e-9)


def test_the_settings_of_the_app_reach_the_client():
    strategy, grid, _ = setting()
    orders = []
    handle = grid.handle
    grid.handle = lambda message: orders.append(message) or handle(message)
    strategy.start(grid, initial(logistic()), 2, train_config=ConfigRecord({"proximal": 0.5}))
    configs = [m.content["config"] for m in orders if m.metadata.message_type == "train"]
    assert {c["proximal"] for c in configs} == {0.5}
    assert [c["server-round"] for c in configs] == np.repeat([1, 2], ASKED[:2].sum(1)).tolist()


def test_metrics_are_means_by_number_of_examples_and_nan_counts_for_nobody():
    reported = [
        MetricRecord({"num-examples": 1, "loss": 2.0, "hits": 4}),
        MetricRecord({"num-examples": 3, "loss": 6.0}),
        MetricRecord({"num-examples": 5, "loss": float("nan")}),
    ]
    assert dict(mean_metrics(reported)) == {"loss": 5.0, "hits": 4.0}


# Models -------------------------------------------------------------------------------------------


class Tied(nn.Module):
    """A frozen part, a tied part, a counter: d is 12 of the 40 numbers in the state dict."""

    def __init__(self, value: float = 0.5) -> None:
        super().__init__()
        self.body = nn.Linear(4, 4)
        self.head = nn.Linear(4, 3, bias=False)
        self.again = self.head
        self.register_buffer("steps", torch.tensor(3))
        with torch.no_grad():
            self.body.weight.fill_(value)
            self.body.bias.fill_(value)
        self.body.requires_grad_(False)

    def forward(self, x):
        return self.again(torch.tanh(self.body(x)))


def test_frozen_and_tied_parameters_go_with_the_model_but_not_into_the_vector():
    world, algorithm = classification(), fedavg(local=Local(lr=0.3, steps=2, batch_size=None))
    here, there = Model.of(Tied(0.5), classes=3), Model.of(Tied(-2.0), classes=3)
    strategy = Strategy(
        algorithm,
        names(world),
        rules=Rules(min_round=0.0, start_with=6),
        model=here,
        participation=world.participation,
        clock=FakeTime().clock,
    )
    grid = InProcessGrid(client_app(algorithm, there, own_data(world)), nodes(6))
    arrays = initial(here)
    result = strategy.start(grid, arrays, 3)
    before, after = arrays.to_torch_state_dict(), result.arrays.to_torch_state_dict()
    assert list(before) == list(after)
    assert torch.equal(after["body.weight"], before["body.weight"])
    assert int(after["steps"]) == 3
    assert torch.equal(after["again.weight"], after["head.weight"])
    assert not torch.equal(after["head.weight"], before["head.weight"])
    # The clients trained on the body that the server sent, not on their own.
    torch.testing.assert_close(
        Packing.of(result.arrays, here).start,
        in_process(algorithm, world, here, 3)[-1],
        rtol=1e-9,
        atol=1e-11,
    )


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        ([1, 2], "load_data returned 'list'; it must return a turnout.data.Pool"),
        (Pool(torch.zeros(0, 4), torch.zeros(0, dtype=torch.int64)), "returned no samples"),
    ],
)
def test_data_that_cannot_be_trained_on_are_named(data, sentence, caplog):
    world, algorithm = classification(), fedavg()
    strategy = Strategy(algorithm, names(world), rules=Rules(min_round=0.0), clock=FakeTime().clock)
    grid = InProcessGrid(client_app(algorithm, logistic(), lambda context: data), nodes(6))
    strategy.start(grid, initial(logistic()), 1)
    assert sentence in caplog.text


def test_without_flower_there_is_one_sentence() -> None:
    code = "import sys; sys.modules['flwr'] = None; import turnout; turnout.flower.Strategy"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    last = done.stderr.strip().splitlines()[-1]
    assert last == (
        "ModuleNotFoundError: turnout.flower needs Flower: pip install 'turnout[flower]'"
    )


def test_a_client_with_frozen_parts_and_a_strategy_that_does_not_know_of_them_is_told_so():
    world, algorithm = classification(), fedavg()
    there = Model.of(Tied(), classes=3)
    strategy = Strategy(algorithm, names(world), rules=Rules(min_round=0.0), clock=FakeTime().clock)
    grid = InProcessGrid(client_app(algorithm, there, own_data(world)), nodes(6))
    result = strategy.start(grid, initial(there), 1)
    assert any("must be given the model, too" in key for key in result.train_metrics_clientapp[1])


@pytest.mark.parametrize(
    ("arrays", "sentence"),
    [
        ({}, "dtypes of the floating-point arrays in initial_arrays are none"),
        ({"steps": torch.tensor(3)}, "are none"),
        ({"a": torch.ones(2), "b": torch.ones(2).double()}, "torch.float32, torch.float64"),
        ({"bn.running_var": torch.ones(2)}, "running statistics 'bn.running_var'"),
    ],
)
def test_arrays_that_cannot_be_averaged_are_refused(arrays, sentence):
    with pytest.raises(InputError, match=sentence):
        Packing.of(record(OrderedDict(arrays)))


def test_a_record_and_its_vector_are_the_same_numbers():
    arrays = ArrayRecord(
        OrderedDict(a=torch.arange(6.0).reshape(2, 3), n=torch.tensor(7), b=torch.ones(2))
    )
    packing = Packing.of(arrays)
    assert packing.start.tolist() == [0, 1, 2, 3, 4, 5, 1, 1]
    back = packing.record(packing.start + 1).to_torch_state_dict()
    assert back["a"].tolist() == [[1, 2, 3], [4, 5, 6]]
    assert int(back["n"]) == 7


# Settings -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"deadline": 0}, "deadline is 0"),
        ({"quorum": 1.5}, "quorum is 1.5"),
        ({"quorum": 0}, "quorum is 0"),
        ({"quorum": True}, "quorum is True"),
        ({"min_round": 90.0}, "min_round is 90.0; it must be from 0 to the deadline, 60"),
        ({"late_rounds": -1}, "late_rounds is -1"),
        ({"per_round": 0}, "per_round is 0"),
        ({"norm_bound": 0.0}, "norm_bound is 0.0"),
        ({"start_with": -1}, "start_with is -1"),
        ({"startup": -1.0}, "startup is -1.0"),
        ({"deadline": float("inf")}, "deadline is inf; it must be a finite number of seconds"),
        ({"deadline": "60"}, "deadline is '60'"),
        ({"startup": float("nan")}, "startup is nan"),
        ({"late_rounds": 0.5}, "late_rounds is 0.5; it must be a whole number"),
        ({"per_round": 2.5}, "per_round is 2.5"),
        ({"norm_bound": "1"}, "norm_bound is '1'"),
    ],
)
def test_rules_that_cannot_be_are_refused(settings, sentence):
    with pytest.raises(InputError, match=sentence):
        Rules(**settings)


def test_a_process_of_arrivals_is_not_to_be_injected(tmp_path):
    (tmp_path / "log.csv").write_text("client,started_s,took_s\n5,0,1\n")
    process = arrivals(tmp_path / "log.csv")
    with pytest.raises(
        InputError, match=r"participation is arrivals, .* leave it out, .*late_rounds"
    ):
        Strategy(fedau(), 6, participation=process)


def test_who_selects_says_how_many():
    with pytest.raises(InputError, match="per_round is 3; it must be none: f3ast itself says"):
        Strategy(f3ast(), 6, rules=Rules(per_round=3))


def test_a_recipe_that_was_not_called_is_no_algorithm():
    with pytest.raises(InputError, match=r"it must be an algorithm, such as .*fedau\(\)"):
        Strategy(fedau, 6)


@pytest.mark.parametrize("missing", ["model", "server_data"])
def test_assistance_needs_a_model_and_data_at_the_server(missing):
    world = classification()
    given = {"model": logistic(), "server_data": world.server}
    del given[missing]
    strategy = Strategy(safari(), names(world), clock=FakeTime().clock, **given)
    grid = InProcessGrid(client_app(safari(), logistic(), own_data(world)), nodes(6))
    with pytest.raises(InputError, match=f"{missing} is none; safari trains at the server"):
        strategy.start(grid, initial(logistic()), 1)


def test_a_model_that_is_no_longer_finite_ends_the_run_and_not_the_checkpoint(tmp_path):
    world = classification(np.ones_like(DELIVERED))
    algorithm = fedau(server_lr=1e308, local=Local(lr=100.0))
    settings = {"directory": tmp_path, "rules": Rules(min_round=0.0)}
    strategy = Strategy(algorithm, names(world), clock=FakeTime().clock, **settings)
    grid = InProcessGrid(client_app(algorithm, logistic(), own_data(world)), nodes(6))
    with pytest.raises(ArithmeticError, match="diverged in round"):
        trajectory(strategy, grid, initial(logistic()), ROUNDS)
    saved = checkpoint.load(tmp_path / "checkpoints")
    assert saved is None or bool(torch.isfinite(saved.tree["server"]["x"]).all())
