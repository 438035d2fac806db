"""Plays the case that the order names."""

from flwr.app import Context, Message
from flwr.clientapp import ClientApp
from probe import task
from tests.conformance.cases import CASES, logistic
from tests.flower.federations import own_data

from turnout.flower import client_app
from turnout.flower.answers import answer_greetings
from turnout.flower.naming import stable_name

app = ClientApp()
answer_greetings(app, stable_name)


@app.train()
def train(message: Message, context: Context) -> Message:
    case = CASES[str(message.content.config_records["config"]["case"])]
    world = task.world(int(context.run_config["clients"]))
    return client_app(case, logistic(), own_data(world))(message, context)
