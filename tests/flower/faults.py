"""A grid whose clients are slow, die, raise or send rubbish, in time that only sleeping moves on."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import torch
from flwr.app import Error, Message, RecordDict
from flwr.clientapp import ClientApp
from tests.flower.federations import FakeTime

from turnout.flower import InProcessGrid, messages
from turnout.flower.packing import record, tensors

TRAIN_S = 1.0
"""How long a client that has nothing wrong with it takes."""


@dataclass(frozen=True)
class Fault:
    """What happens to one answer."""

    after: float = TRAIN_S
    """Seconds until it is there."""
    change: Callable[[RecordDict, Message], RecordDict | None] = lambda content, order: content
    """Its content instead; None loses it."""
    error: int | None = None
    twice: bool = False
    runs: bool = True
    """Does the ClientApp run at all?"""


def slow(seconds: float) -> Fault:
    return Fault(after=seconds)


HANGS = Fault(after=1e6, runs=False)
LOST = Fault(change=lambda content, order: None)
"""The client has trained, and its answer never arrives."""
KILLED = Fault(after=60.0, error=5, runs=False)
"""Flower says so a minute later, in the name of node 1."""
RAISES = Fault(error=2, runs=False)


def send(
    update: Callable[[torch.Tensor], torch.Tensor] = lambda u: u,
    also: dict[str, torch.Tensor] | None = None,
    **own: object,
) -> Fault:
    """An answer with another update, with more vectors, or with other words beside them."""

    def change(content: RecordDict, order: Message) -> RecordDict:
        vectors = tensors(content.array_records["update"])
        vectors["update"] = update(vectors["update"])
        content["update"] = record({**vectors, **(also or {})})
        content.config_records["turnout"].update(own)  # type: ignore[arg-type]
        return content

    return Fault(change=change)


class FaultyGrid(InProcessGrid):
    """`faults[client, round]` says what goes wrong; rounds count from 1, as Flower's do."""

    def __init__(self, app: ClientApp, clients: dict, time: FakeTime, faults: dict) -> None:
        super().__init__(app, clients)
        self.time, self.faults = time, faults
        self.offline: set[int] = set()
        self.waiting: dict[str, list[tuple[float, Message]]] = {}
        self.ends: dict[str, tuple[float, Message]] = {}
        self.pushed: list[Message] = []

    def get_node_ids(self) -> list[int]:
        return [node for node in self.contexts if node not in self.offline]

    def push_messages(self, outgoing: Iterable[Message]) -> list[str]:
        numbers = []
        for message in outgoing:
            number = f"m{next(self._numbers)}"
            message.metadata.__dict__["_message_id"] = number
            self.pushed.append(message)
            self.ends[number] = self.time.seconds + message.metadata.ttl, message
            self.waiting[number] = self._answers(message)
            numbers.append(number)
        return numbers

    def _answers(self, message: Message) -> list[tuple[float, Message]]:
        node, now = message.metadata.dst_node_id, self.time.seconds
        if message.metadata.message_type == messages.GREETING:
            return [(now, self.handle(message))]
        client = self.contexts[node].node_config["partition-id"]
        key = (client, int(message.metadata.group_id or 0))
        fault = self.faults.get(key, Fault())
        if callable(fault):
            fault = fault(self)
        if node in self.offline:
            fault = KILLED
        answer = self.handle(message) if fault.runs else None
        if fault.error is not None:
            answer = Message(Error(fault.error, "Traceback …\nRuntimeError: oh"), reply_to=message)
            answer.metadata.__dict__["_src_node_id"] = 1
        elif answer is None:
            return []
        elif answer.has_content():
            content = fault.change(answer.content, message)
            if content is None:
                return []
            answer = Message(content, reply_to=message)
        due = now + fault.after
        return [(due, answer)] * (2 if fault.twice else 1)

    def pull_messages(self, message_ids: Iterable[str]) -> list[Message]:
        now, out = self.time.seconds, []
        for number in message_ids:
            end, message = self.ends[number]
            due = [answer for at, answer in self.waiting[number] if at <= min(now, end)]
            if due:
                out += due
                self.waiting[number] = []
            elif now > end:
                out.append(Message(Error(3, "expired"), reply_to=message))
        return out
