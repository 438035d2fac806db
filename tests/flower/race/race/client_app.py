"""A training loop as Flower's examples have it, and the same one with turnout around it."""

import torch
from flwr.app import ArrayRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp

from race.task import model
from turnout.algorithms import fedau
from turnout.flower import train as turnout_train

app = ClientApp()
inner = ClientApp()


@turnout_train(inner, fedau())
def loop(message: Message, context: Context) -> Message:
    net = model()
    net.load_state_dict(message.content["arrays"].to_torch_state_dict())
    generator = torch.Generator().manual_seed(int(context.node_config["partition-id"]))
    inputs = torch.randn(256, 64, generator=generator)
    labels = torch.randint(10, (256,), generator=generator)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for rows in torch.arange(256).split(32):
        loss = torch.nn.functional.cross_entropy(net(inputs[rows]), labels[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    metrics = MetricRecord({"train_loss": loss.item(), "num-examples": 256})
    content = RecordDict({"arrays": ArrayRecord(net.state_dict()), "metrics": metrics})
    return Message(content, reply_to=message)


@app.train()
def train(message: Message, context: Context) -> Message:
    return inner(message, context) if "turnout" in message.content else loop(message, context)


@app.query("turnout")
def query(message: Message, context: Context) -> Message:
    return inner(message, context)
