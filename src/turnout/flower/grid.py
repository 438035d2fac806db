"""A whole federation in one process: a Grid that calls the ClientApp directly.

For trying out an app, and for tests: no network, no SuperLink, a tenth of a millisecond a message.
"""

from collections.abc import Iterable, Mapping
from copy import deepcopy
from itertools import count

from flwr.app import Context, Error, Message, RecordDict, UserConfig
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid
from flwr.supercore.run import Run
from flwr.supercore.task_identity import TaskIdentity

_SERVER, _RAISED = 1, 2


class InProcessGrid(Grid):
    """Nodes are Contexts; a message is answered as soon as it is pushed.

    `clients` are the `node_config` of each node, by node id.
    """

    def __init__(self, app: ClientApp, clients: Mapping[int, UserConfig]) -> None:
        self.app = app
        self.contexts = {
            node: Context(1, node, dict(config), RecordDict(), {})
            for node, config in clients.items()
        }
        self.answers: dict[str, Message] = {}
        self._numbers = count(1)
        # Flower's messages ask their process whose they are.
        TaskIdentity.run_id, TaskIdentity.node_id, TaskIdentity.task_id = 1, _SERVER, 1

    def handle(self, message: Message) -> Message:
        """What the node's ClientApp answers."""
        context = self.contexts.get(message.metadata.dst_node_id)
        if context is None:
            return Message(Error(5, "node is gone"), reply_to=message)
        try:  # on a copy, as on a network: some of Flower's clients empty what they are sent
            return self.app(deepcopy(message), context)
        except Exception as error:  # a client's exception is an answer, as with Flower
            return Message(Error(_RAISED, repr(error)), reply_to=message)

    def push_messages(self, messages: Iterable[Message]) -> list[str]:
        numbers = []
        for message in messages:
            number = f"m{next(self._numbers)}"
            message.metadata.__dict__["_message_id"] = number
            self.answers[number] = self.handle(message)
            numbers.append(number)
        return numbers

    def pull_messages(self, message_ids: Iterable[str]) -> list[Message]:
        return [self.answers.pop(number) for number in message_ids if number in self.answers]

    def get_node_ids(self) -> list[int]:
        return list(self.contexts)

    def send_and_receive(
        self, messages: Iterable[Message], *, timeout: float | None = None
    ) -> list[Message]:
        return self.pull_messages(self.push_messages(messages))

    def create_message(
        self,
        content: RecordDict,
        message_type: str,
        dst_node_id: int,
        group_id: str,
        ttl: float | None = None,
    ) -> Message:
        return Message(content, dst_node_id, message_type, ttl=ttl, group_id=group_id)

    def set_run(self, run: Run) -> None:
        self._run = run

    @property
    def run(self) -> Run:
        return self._run
