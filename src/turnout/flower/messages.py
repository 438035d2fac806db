"""What server and clients write to each other, and nothing else about the wire.

A round's order carries the model under "arrays" and settings under "config", as any Flower client
expects them; what turnout adds stands under "turnout" and "turnout.means". A reply carries its
vectors, flat, under "update" and its metrics under "metrics".
"""

from typing import NamedTuple, cast

import numpy as np
from flwr.app import ArrayRecord, ConfigRecord, Message, MessageType, MetricRecord, RecordDict
from torch import Tensor

from turnout.algorithm import Algorithm
from turnout.flower.kept import Word
from turnout.flower.packing import record, tensors
from turnout.parts.local import Tensors
from turnout.round import MEMORY, Broadcast

GREETING = f"{MessageType.QUERY}.turnout"
"""The message type that asks a node for its client's stable name."""
_OWN, _MEANS, _UPDATE, _CHANGE = "turnout", "turnout.means", "update", "change."


def change_names(algorithm: Algorithm) -> tuple[str, ...]:
    """Names of the changes that clients send beside their update."""
    memory = algorithm.memory
    held = (MEMORY,) if memory is not None and memory.recall is None else ()
    return held + algorithm.local.rule.shared


class Ticket(NamedTuple):
    """What a client is told beside the model."""

    seed: int
    row: int
    """Its row in the roster: the client number of every draw."""
    round: int
    """The client round."""
    lr: float
    weight: float
    share: float
    accepted: int
    """The last client round accepted from this client since `generation` began; −1 for none."""
    generation: int
    """How often what clients keep has been started anew."""
    last: int
    """The last client round ever accepted from this client; −1 for none."""

    @property
    def vectors(self) -> Word:
        """What is said about the vectors that clients keep."""
        return Word(self.round, self.accepted, self.generation)

    @property
    def history(self) -> Word:
        """What is said about a client's own participation history, which is never started anew."""
        return Word(self.round, self.last)

    def broadcast(self, x: Tensor, means: Tensors) -> Broadcast:
        return Broadcast(
            x=x,
            round=self.round,
            lr=self.lr,
            weights=np.array([self.weight]),
            shares=np.array([self.share]),
            means=means,
        )


def order(
    arrays: ArrayRecord, means: ArrayRecord | None, config: ConfigRecord, ticket: Ticket
) -> RecordDict:
    """The content of the message that asks a client to train."""
    content = RecordDict({"arrays": arrays, "config": config})
    content[_OWN] = ConfigRecord(ticket._asdict())
    if means is not None:
        content[_MEANS] = means
    return content


def read_order(content: RecordDict) -> tuple[Ticket, Tensors]:
    """The ticket, and what the server knows of vectors that clients keep."""
    own = content.config_records[_OWN]
    ticket = Ticket(**{name: cast(float, own[name]) for name in Ticket._fields})  # type: ignore[arg-type]
    return ticket, tensors(means_of(content))


def means_of(content: RecordDict) -> ArrayRecord:
    return content.array_records.get(_MEANS) or ArrayRecord()


class Reply(NamedTuple):
    """A client's answer, not yet believed."""

    client: str
    round: int
    lost: bool
    """The client has lost what it kept, and has not trained."""
    update: Tensor | None
    changes: Tensors
    metrics: MetricRecord


def reply(said: Reply) -> RecordDict:
    own = ConfigRecord({"client": said.client, "round": said.round, "lost": said.lost})
    vectors = {f"{_CHANGE}{name}": change for name, change in said.changes.items()}
    if said.update is not None:
        vectors[_UPDATE] = said.update
    return RecordDict({_OWN: own, "update": record(vectors), "metrics": said.metrics})


def read_reply(content: RecordDict) -> Reply:
    """The answer in a message's content; KeyError, TypeError or ValueError if it holds none."""
    own = content.config_records[_OWN]
    vectors = tensors(content.array_records["update"])
    return Reply(
        client=str(own["client"]),
        round=int(cast(int, own["round"])),
        lost=bool(own.get("lost", False)),
        update=vectors.pop(_UPDATE, None),
        changes={name.removeprefix(_CHANGE): vector for name, vector in vectors.items()},
        metrics=content.metric_records.get("metrics") or MetricRecord(),
    )


def name_tag(client: str) -> RecordDict:
    """What a client answers to a greeting."""
    return RecordDict({_OWN: ConfigRecord({"client": client})})


def read_name_tag(message: Message) -> str:
    return str(message.content.config_records[_OWN]["client"])
