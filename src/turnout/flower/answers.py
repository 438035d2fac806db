"""What a turnout client answers, however it trains."""

from flwr.app import Context, Message, MetricRecord
from flwr.clientapp import ClientApp

from turnout.flower import kept, messages
from turnout.flower.messages import Reply, Ticket
from turnout.flower.naming import Naming
from turnout.parts.local import Tensors
from turnout.round import Upload


def answer_greetings(app: ClientApp, name: Naming) -> None:
    """Let `app` tell the server its client's name."""

    @app.query("turnout")
    def greet(message: Message, context: Context) -> Message:
        return Message(messages.name_tag(name(context)), reply_to=message)


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
    if after:
        kept.pend(context.state, ticket, after)
    changes = {name: change[0] for name, change in upload.changes.items()}
    said = Reply(client, ticket.round, False, upload.update[0], changes, metrics)
    return Message(messages.reply(said), reply_to=message)


def lost(message: Message, client: str, ticket: Ticket) -> Message:
    """The answer of a client that no longer has what it kept, and has not trained."""
    said = Reply(client, ticket.round, True, None, {}, MetricRecord())
    return Message(messages.reply(said), reply_to=message)
