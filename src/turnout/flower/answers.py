"""What a turnout client answers, however it trains."""

from collections.abc import Callable
from copy import copy

import torch
from flwr.app import Context, Message, MetricRecord
from flwr.client.mod import secaggplus_mod
from flwr.clientapp import ClientApp
from torch import Tensor

from turnout.algorithm import Algorithm
from turnout.flower import kept, messages, secure_wire
from turnout.flower.messages import Reply, Ticket
from turnout.flower.naming import Naming
from turnout.parts.local import Tensors
from turnout.round import Upload, nothing_kept

_SPACE = "turnout"

Choice = Algorithm | Callable[[Context], Algorithm]
"""An algorithm, or how the run's configuration makes it: `context.run_config` is known late."""


def choose(algorithm: Choice, context: Context) -> Algorithm:
    return algorithm if isinstance(algorithm, Algorithm) else algorithm(context)


def answer_greetings(app: ClientApp, name: Naming) -> None:
    """Let `app` tell the server its client's name."""

    @app.query("turnout")
    def greet(message: Message, context: Context) -> Message:
        return Message(messages.name_tag(name(context)), reply_to=message)


def recall_vectors(
    algorithm: Algorithm, context: Context, ticket: Ticket, x: Tensor
) -> Tensors | None:
    """The vectors [1, d] that this client keeps; None if it has lost them."""
    fresh = nothing_kept(algorithm, 1, x)
    return kept.recall(context.state, _SPACE, ticket.vectors, fresh)


def pend_vectors(context: Context, ticket: Ticket, after: Tensors) -> None:
    """They are as they are after this round, if the server accepts it."""
    kept.pend(context.state, _SPACE, ticket.vectors, after)


def delivery(client: str, ticket: Ticket, upload: Upload, metrics: MetricRecord) -> Reply:
    """The answer with an upload of one row."""
    changes = {name: change[0] for name, change in upload.changes.items()}
    return Reply(client, ticket.round, False, upload.update[0], changes, metrics)


def lost(algorithm: Algorithm, client: str, ticket: Ticket, x: Tensor) -> Reply:
    """The answer of a client that no longer has what it kept, and has not trained."""
    zeros = torch.zeros_like(x)
    changes = dict.fromkeys(messages.change_names(algorithm), zeros)
    return Reply(client, ticket.round, True, zeros, changes, MetricRecord())


def answer_orders(app: ClientApp, work: Callable[[Message, Context], Reply], secure: bool) -> None:
    """Let `app` answer orders by `work`, in the clear or masked by SecAgg+."""
    if not secure:

        @app.train()
        def train(message: Message, context: Context) -> Message:
            return Message(messages.reply(work(message, context)), reply_to=message)

        return

    @app.train(mods=[secaggplus_mod])
    def train_masked(message: Message, context: Context) -> Message:
        plain = copy(message)
        plain.content, clip = secure_wire.order(message.content)
        return Message(secure_wire.answer(work(plain, context), clip), reply_to=message)
