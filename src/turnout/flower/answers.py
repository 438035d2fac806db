"""What a turnout client answers, however it trains."""

from collections.abc import Callable

import torch
from flwr.app import Context, Message, MetricRecord
from flwr.clientapp import ClientApp
from torch import Tensor

from turnout.algorithm import Algorithm
from turnout.flower import kept, messages
from turnout.flower.messages import Reply, Ticket
from turnout.flower.naming import Naming
from turnout.parts.local import Tensors
from turnout.round import Upload, keeps

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
    fresh = {name: torch.zeros_like(x)[None] for name in keeps(algorithm)}
    return kept.recall(context.state, _SPACE, ticket.vectors, fresh)


def pend_vectors(context: Context, ticket: Ticket, after: Tensors) -> None:
    """They are as they are after this round, if the server accepts it."""
    kept.pend(context.state, _SPACE, ticket.vectors, after)


def deliver(
    message: Message,
    context: Context,
    client: str,
    ticket: Ticket,
    upload: Upload,
    after: Tensors,
    metrics: MetricRecord,
) -> Message:
    """The answer with an upload of one row; what the client keeps is pending from now on."""
    pend_vectors(context, ticket, after)
    changes = {name: change[0] for name, change in upload.changes.items()}
    said = Reply(client, ticket.round, False, upload.update[0], changes, metrics)
    return Message(messages.reply(said), reply_to=message)


def lost(message: Message, client: str, ticket: Ticket) -> Message:
    """The answer of a client that no longer has what it kept, and has not trained."""
    said = Reply(client, ticket.round, True, None, {}, MetricRecord())
    return Message(messages.reply(said), reply_to=message)
