"""What a reply must be before it may touch the model; anything else is refused with a reason."""

from collections.abc import Iterable
from math import inf, isfinite
from typing import NamedTuple

import numpy as np
import torch
from flwr.app import Message, MetricRecord
from torch import Tensor

from turnout.flower import messages
from turnout.flower.messages import LOSS, Reply, Ticket
from turnout.flower.secure_wire import Vouched
from turnout.flower.words import one_line
from turnout.parts.local import Tensors
from turnout.round import Upload


class RefusedError(Exception):
    """Why an answer does not count, as a clause."""


class FailedError(RefusedError):
    """There was no answer to look at: the client raised, or its node is gone."""


class LostError(RefusedError):
    """The client no longer has what it kept."""


class Expected(NamedTuple):
    """What the answers of this federation have in common."""

    x: Tensor
    """[d]: the shape and the dtype of every vector."""
    changes: tuple[str, ...]
    """Names of the changes that a client must send."""
    norm_bound: float | None
    hears: bool = False
    """Must clients report their loss?"""


class Accepted(NamedTuple):
    upload: Upload
    metrics: MetricRecord


_CODES = {
    1: "its ClientApp could not be loaded",
    2: "its ClientApp raised an exception",
    3: "its reply did not come in time",
    4: "its reply did not come in time",
    5: "its node is gone",
    8: "its ClientApp crashed",
}


def examine(message: Message, client: str, ticket: Ticket, expected: Expected) -> Accepted:
    """The upload in a client's answer to `ticket`; raises `RefusedError` where it does not hold one."""
    if message.has_error():
        code = message.error.code
        reason = message.error.reason
        detail = f": {one_line(reason)}" if code == 2 and reason else ""
        raise FailedError(f"{_CODES.get(code, f'Flower reports error {code}')}{detail}")
    try:
        said = messages.read_reply(message.content)
    except Exception as error:  # whatever a stranger's bytes can do to a parser
        why = f"{type(error).__name__}: {one_line(error)}"
        raise RefusedError(f"not an answer that turnout can read ({why})") from None
    _check_words(said, client, ticket)
    if said.update is None:
        raise RefusedError("without an update")
    if set(said.changes) != set(expected.changes):
        raise RefusedError(
            f"with changes of {_list(said.changes)}, not of {_list(expected.changes)}; "
            "client and server may run different algorithms"
        )
    named = {"update": said.update, **{f"change of {n}": c for n, c in said.changes.items()}}
    for name, vector in named.items():
        _check(name, vector, expected)
    changes: Tensors = {name: change[None] for name, change in said.changes.items()}
    losses = np.array([_loss(said.metrics)]) if expected.hears else None
    upload = Upload(said.update[None], np.array([ticket.weight]), changes, losses)
    return Accepted(upload, said.metrics)


def _loss(metrics: MetricRecord) -> float:
    loss = metrics.get(LOSS)
    if not isinstance(loss, int | float) or not isfinite(loss):
        raise RefusedError(
            f"without a finite number as its metric {LOSS!r}, the loss of the model that it was sent, "
            "by which the server chooses whom to ask"
        )
    return float(loss)


def vouch(words: Vouched, client: str, ticket: Ticket) -> None:
    """Check what a client says of an upload that nobody can see; raises `RefusedError`."""
    _check_words(words, client, ticket)
    if words.refused:
        raise RefusedError(one_line(words.refused))


def _check_words(said: Reply | Vouched, client: str, ticket: Ticket) -> None:
    if said.client != client:
        who = one_line(said.client)
        raise RefusedError(f"from client {who!r}, who was not asked by this message")
    if said.round != ticket.round:
        raise RefusedError(f"for client round {said.round}, not {ticket.round}")
    if said.lost:
        raise LostError("it has lost what it kept between rounds")


def _check(name: str, vector: Tensor, expected: Expected) -> None:
    x = expected.x
    if vector.shape != x.shape:
        raise RefusedError(
            f"{name} of shape {tuple(vector.shape)}, not {tuple(x.shape)}; if the model has "
            "frozen or tied parameters, the Strategy must be given the model, too, and so must "
            "turnout.flower.train"
        )
    if vector.dtype != x.dtype:
        raise RefusedError(f"{name} of dtype {vector.dtype}, not {x.dtype}")
    if not bool(torch.isfinite(vector).all()):
        kind = "NaN" if bool(torch.isnan(vector).any()) else "infinite values"
        raise RefusedError(f"{name} with {kind}")
    norm = float(vector.norm())
    if norm == inf:  # finite numbers, but sums of such vectors would not be
        raise RefusedError(f"{name} with a norm beyond what {x.dtype} can hold")
    if expected.norm_bound is not None and norm > expected.norm_bound:
        raise RefusedError(f"{name} with norm {norm:.4g}, above the bound {expected.norm_bound:g}")


def _list(names: Iterable[str]) -> str:
    return one_line(", ".join(sorted(names)) or "nothing")
