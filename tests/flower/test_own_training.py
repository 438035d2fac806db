"""Turnout around a person's own training loop, as Flower's examples write them."""

import pytest
import torch
from flwr.app import ArrayRecord, ConfigRecord, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from tests.conformance.cases import ROUNDS, classification, logistic
from tests.flower.federations import FakeTime, initial, names, nodes, own_data

from turnout import InputError
from turnout.algorithms import amplified, fedau, fedvarp, mifa, scaffold
from turnout.flower import InProcessGrid, Rules, Strategy, client_app, train
from turnout.parts.local import Local

FULL_BATCH = Local(lr=0.3, steps=2, batch_size=None)


def usual_app(algorithm, world) -> ClientApp:
    """Two steps of full-batch SGD, by torch's own optimiser, between Flower's usual lines."""
    app = ClientApp()

    @train(app, algorithm)
    def own(message: Message, context) -> Message:
        net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(4, 3)).double()
        net.load_state_dict(message.content["arrays"].to_torch_state_dict())
        pool = own_data(world)(context)
        optimizer = torch.optim.SGD(net.parameters(), lr=message.content["config"]["lr"])
        for _ in range(2):
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(net(pool.inputs), pool.targets)
            loss.backward()
            optimizer.step()
        metrics = MetricRecord({"train_loss": loss.item(), "num-examples": len(pool)})
        content = RecordDict({"arrays": ArrayRecord(net.state_dict()), "metrics": metrics})
        return Message(content, reply_to=message)

    return app


def play(app, algorithm, world, config=None):
    strategy = Strategy(
        algorithm,
        names(world),
        rules=Rules(min_round=0.0, start_with=6),
        participation=world.participation,
        clock=FakeTime().clock,
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
    ],
)
def test_a_loop_of_ones_own_that_takes_the_same_steps_gives_the_same_models(build):
    algorithm, world = build(local=FULL_BATCH), classification()
    own, _ = play(usual_app(algorithm, world), algorithm, world, ConfigRecord({"lr": 0.3}))
    ours, _ = play(client_app(algorithm, logistic(), own_data(world)), algorithm, world)
    torch.testing.assert_close(own, ours, rtol=1e-9, atol=1e-11)


def test_control_variates_need_every_step():
    with pytest.raises(InputError, match="scaffold steers every local step"):
        train(ClientApp(), scaffold())
