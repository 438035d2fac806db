"""Plays the case that the order names, with the faults that the run's configuration names."""

import time

from flwr.app import Context, Message
from flwr.clientapp import ClientApp
from tests.conformance.cases import logistic
from tests.flower.federations import own_data

from probe import task
from turnout.flower import client_app
from turnout.flower.answers import answer_greetings
from turnout.flower.naming import stable_name
from turnout.flower.packing import record, tensors

app = ClientApp()
answer_greetings(app, stable_name)


@app.train()
def train(message: Message, context: Context) -> Message:
    clients = int(context.run_config["clients"])
    if context.run_config["secure"]:  # whose messages are the protocol's, and name no case
        case = task.case(str(context.run_config["cases"]), clients)
        data = own_data(task.world(clients))
        return client_app(case, logistic(), data, secure=True)(message, context)
    config, client = message.content.config_records["config"], stable_name(context)
    faults = dict(f.split("=") for f in str(context.run_config["faults"]).split())
    fault = faults.get(f"{client}@{config['server-round']}", "none")
    if fault == "raises":
        raise RuntimeError("no data today")
    if fault.startswith("sleeps"):
        time.sleep(float(fault.removeprefix("sleeps:")))
    case = task.case(str(config["case"]), clients)
    world = task.world(clients)
    answer = client_app(case, logistic(), own_data(world))(message, context)
    if fault == "nan":
        vectors = tensors(answer.content.array_records["update"])
        answer.content["update"] = record({n: v * float("nan") for n, v in vectors.items()})
    return answer
