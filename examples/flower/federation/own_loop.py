"""The client's side for an app that trains by a loop of its own, as Flower's examples do.

To use it, name `federation.own_loop:app` as the clientapp in pyproject.toml.
"""

import torch
from flwr.app import ArrayRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp

from federation import task
from turnout.flower import train as turnout_train

app = ClientApp()


@turnout_train(app, lambda context: task.algorithm(context.run_config))  # was: @app.train()
def train(message: Message, context: Context) -> Message:
    net, pool = task.model().module, task.own_data(context)
    net.load_state_dict(message.content["arrays"].to_torch_state_dict())
    inputs = pool.normalise(pool.inputs)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(5):
        rows = torch.randperm(len(pool))[:16]
        loss = torch.nn.functional.cross_entropy(net(inputs[rows]), pool.targets[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    metrics = MetricRecord({"train_loss": loss.item(), "num-examples": len(pool)})
    content = RecordDict({"arrays": ArrayRecord(net.state_dict()), "metrics": metrics})
    return Message(content, reply_to=message)
