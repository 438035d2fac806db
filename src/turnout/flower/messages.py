"""What server and clients write to each other, and nothing else about the wire.

A round's order carries the model under "arrays" and settings under "config", as any Flower client
expects them; what turnout adds stands under "turnout" and "turnout.means". A reply carries its
vectors, flat, under "update" and its metrics under "metrics".
"""

from math import isfinite
from typing import NamedTuple, cast

import numpy as np
from flwr.app import ArrayRecord, ConfigRecord, Message, MessageType, MetricRecord, RecordDict
from torch import Tensor

from turnout.algorithm import Algorithm
from turnout.errors import InputError
from turnout.flower.kept import Word
from turnout.flower.packing import record, tensors
from turnout.flower.words import as_name, one_line
from turnout.parts.local import Tensors
from turnout.round import MEMORY, Broadcast

GREETING = f"{MessageType.QUERY}.turnout"
"""The message type that asks a node for its client's stable name."""
LOSS = "loss-before"
"""The metric under which clients report the loss of the model that they were sent, where asked to."""
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


class Order(NamedTuple):
    """A round's order as a client reads it."""

    ticket: Ticket
    named: Tensors
    """The model: tensors by their names."""
    means: Tensors
    """What the server knows of vectors that clients keep."""


def read_order(content: RecordDict) -> Order:
    """The order in a message's content; an `InputError` where there is none that makes sense."""
    try:
        own = content.config_records[_OWN]
        numbers = {name: _number(own[name], of) for name, of in Ticket.__annotations__.items()}
        ticket = Ticket(**numbers)  # type: ignore[arg-type]
        return Order(ticket, read_model(content), tensors(means_of(content)))
    except Exception as error:  # whatever a stranger's records can do to a parser
        raise InputError(
            f"this is no order of turnout.flower.Strategy ({type(error).__name__}: "
            f"{one_line(error)}); the server must run one, of the same version of turnout"
        ) from None


def read_model(content: RecordDict) -> Tensors:
    """The model in a message's content, as tensors by their names."""
    return tensors(content.array_records["arrays"])


def _number(value: object, of: type) -> float:
    if not isinstance(value, int | float) or not isfinite(value) or of(value) != value:
        raise ValueError(f"{one_line(value)!r} where a number is due")
    return cast(float, of(value))


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
    """The answer in a message's content; any exception if it holds none."""
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
    """The name in the answer to a greeting; any exception if it holds none."""
    return as_name(message.content.config_records[_OWN]["client"])
