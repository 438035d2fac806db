"""Turnout around a person's own training loop, as Flower's examples write them."""

import numpy as np
import pytest
import torch
from flwr.app import ArrayRecord, ConfigRecord, Error, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from tests.conformance.cases import ROUNDS, classification, logistic
from tests.flower.federations import FakeTime, initial, names, nodes, own_data

from turnout import InputError
from turnout.algorithms import amplified, ca_fed, fedau, fedvarp, mifa, scaffold
from turnout.flower import (
    InProcessGrid,
    Rules,
    SecureAggregation,
    Strategy,
    client_app,
    train,
)
from turnout.models import Model
from turnout.parts.local import Local

FULL_BATCH = Local(lr=0.3, steps=2, batch_size=None)


def usual_app(algorithm, world, reports=True, **more) -> ClientApp:
    """Two steps of full-batch SGD, by torch's own optimiser, between Flower's usual lines."""
    app = ClientApp()

    @train(app, algorithm, **more)
    def own(message: Message, context) -> Message:
        net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(4, 3)).double()
        net.load_state_dict(message.content["arrays"].to_torch_state_dict())
        pool = own_data(world)(context)
        optimizer = torch.optim.SGD(net.parameters(), lr=message.content["config"]["lr"])
        losses = []
        for _ in range(2):
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(net(pool.inputs), pool.targets)
            losses.append(loss.item())
            loss.backward()
            optimizer.step()
        metrics = MetricRecord({"train_loss": loss.item(), "num-examples": len(pool)})
        if reports:
            metrics["loss-before"] = losses[0]
        content = RecordDict({"arrays": ArrayRecord(net.state_dict()), "metrics": metrics})
        return Message(content, reply_to=message)

    return app


def play(app, algorithm, world, config=None, **more):
    strategy = Strategy(
        algorithm,
        names(world),
        rules=Rules(min_round=0.0, start_with=6),
        participation=world.participation,
        clock=FakeTime().clock,
        **more,
    )
    grid = InProcessGrid(app, nodes(6))
    seen = {}

    def look(number, arrays):
        seen[number] = torch.cat([t.flatten() for t in arrays.to_torch_state_dict().values()])

    result = strategy.start(
        grid, initial(logistic()), ROUNDS, train_config=config, evaluate_fn=look
    )
    return list(seen.values()), result


@pytest.mark.parametrize(
    "build",
    [
        fedau,
        fedvarp,
        lambda **k: mifa(memory="client", **k),
        lambda **k: amplified(3, 2.0, fedau(**k)),
        ca_fed,
    ],
)
def test_a_loop_of_ones_own_that_takes_the_same_steps_gives_the_same_models(build):
    algorithm, world = build(local=FULL_BATCH), classification()
    own, _ = play(usual_app(algorithm, world), algorithm, world, ConfigRecord({"lr": 0.3}))
    ours, _ = play(client_app(algorithm, logistic(), own_data(world)), algorithm, world)
    torch.testing.assert_close(own, ours, rtol=1e-9, atol=1e-11)


def test_a_loss_that_the_server_goes_by_must_be_reported():
    algorithm, world = ca_fed(local=FULL_BATCH), classification()
    lr = ConfigRecord({"lr": 0.3})
    models, result = play(usual_app(algorithm, world, reports=False), algorithm, world, lr)
    assert all(torch.equal(model, models[0]) for model in models)
    refusals = [name for name in result.train_metrics_clientapp[1] if name.startswith("refused:")]
    assert len(refusals) == 3
    assert "without a finite number as its metric 'loss-before'" in refusals[0]


def test_control_variates_need_every_step():
    with pytest.raises(InputError, match="scaffold steers every local step"):
        train(ClientApp(), scaffold())


@pytest.mark.parametrize("build", [fedau, lambda **k: mifa(memory="client", **k)])
def test_a_loop_of_ones_own_under_secure_aggregation(build):
    """The client weighs its upload by its own history, as `client_app` does."""
    algorithm, world = build(local=FULL_BATCH), classification(np.ones((ROUNDS, 6)))
    fine = SecureAggregation(levels=2**28)
    lr = ConfigRecord({"lr": 0.3})
    masked, _ = play(usual_app(algorithm, world, secure=True), algorithm, world, lr, secure=fine)
    plain, _ = play(usual_app(algorithm, world), algorithm, world, lr)
    torch.testing.assert_close(masked, plain, rtol=0, atol=1e-4)


def answering(content: RecordDict) -> ClientApp:
    app = ClientApp()

    @train(app, fedau())
    def own(message: Message, context) -> Message:
        return Message(content, reply_to=message)

    return app


def test_an_answer_without_a_model_is_named(caplog):
    app = answering(RecordDict({"weights": ArrayRecord()}))
    _, result = play(app, fedau(), classification())
    assert {m["delivered"] for m in result.train_metrics_clientapp.values()} == {0}
    assert "must be an ArrayRecord under 'arrays'" in caplog.text


def test_an_error_of_ones_own_is_the_clients_failure(caplog):
    app = ClientApp()

    @train(app, fedau())
    def own(message: Message, context) -> Message:
        return Message(Error(0, "no data today"), reply_to=message)

    _, result = play(app, fedau(), classification())
    assert {m["delivered"] for m in result.train_metrics_clientapp.values()} == {0}
    assert "RuntimeError('no data today')" in caplog.text


def test_a_loop_of_ones_own_with_frozen_and_tied_parameters():
    def net() -> torch.nn.Module:
        head = torch.nn.Linear(4, 3, bias=False)
        body = torch.nn.Linear(4, 4).requires_grad_(False)
        return torch.nn.Sequential(body, torch.nn.Tanh(), head).double()

    world, app, whole = classification(), ClientApp(), Model.of(net(), classes=3)

    @train(app, fedau(), model=Model.of(net(), classes=3))
    def own(message: Message, context) -> Message:
        own = net()
        own.load_state_dict(message.content["arrays"].to_torch_state_dict())
        with torch.no_grad():
            own[2].weight += 1.0
        content = RecordDict({"arrays": ArrayRecord(own.state_dict())})
        return Message(content, reply_to=message)

    strategy = Strategy(
        fedau(),
        names(world),
        rules=Rules(min_round=0.0, start_with=6),
        model=whole,
        clock=FakeTime().clock,
    )
    start = initial(whole)
    result = strategy.start(InProcessGrid(app, nodes(6)), start, 2)
    before, after = start.to_torch_state_dict(), result.arrays.to_torch_state_dict()
    assert torch.equal(after["0.weight"], before["0.weight"])
    torch.testing.assert_close(after["2.weight"], before["2.weight"] + 2.0)
