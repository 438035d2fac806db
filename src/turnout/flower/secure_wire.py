"""Secure aggregation's messages: our orders and uploads in the form that Flower's protocol has."""

import json
from typing import NamedTuple

import numpy as np
import torch
from flwr.app import Array, ArrayRecord, ConfigRecord, RecordDict
from flwr.common import Code, FitIns, FitRes, Status, ndarrays_to_parameters, parameters_to_ndarrays
from flwr.compat.common.recorddict_compat import fitres_to_recorddict, recorddict_to_fitins
from torch import Tensor

from turnout.flower import messages
from turnout.flower.messages import Reply, Ticket


class Vouched(NamedTuple):
    """What a client says in the clear about an upload that nobody can see."""

    client: str
    round: int
    lost: bool
    refused: str
    """Why it has sent zeros instead; empty where it has not."""
    cut: int
    """How many of its numbers lie outside of what the sum can hold."""


def fit_ins(content: RecordDict, ticket: Ticket, clip: float) -> FitIns:
    """An order as the older API has it: arrays in a list, the rest as text."""
    arrays, means = content.array_records["arrays"], messages.means_of(content)
    described = {
        "ticket": ticket._asdict(),
        "config": dict(content.config_records["config"]),
        "arrays": list(arrays),
        "means": list(means),
        "clip": clip,
    }
    vectors = [array.numpy() for array in (*arrays.values(), *means.values())]
    return FitIns(ndarrays_to_parameters(vectors), {"turnout": json.dumps(described)})


def order(content: RecordDict) -> tuple[RecordDict, float]:
    """The order in such a message, as `messages.order` wrote it, and the bound on its numbers."""
    received = recorddict_to_fitins(content, keep_input=True)
    described = json.loads(str(received.config["turnout"]))
    vectors = [Array(np.array(v)) for v in parameters_to_ndarrays(received.parameters)]
    cut = len(described["arrays"])
    arrays = ArrayRecord(dict(zip(described["arrays"], vectors[:cut], strict=True)))
    means = ArrayRecord(dict(zip(described["means"], vectors[cut:], strict=True)))
    config, ticket = ConfigRecord(described["config"]), Ticket(**described["ticket"])
    return messages.order(arrays, means or None, config, ticket), described["clip"]


def answer(said: Reply, clip: float) -> RecordDict:
    """A client's answer; its vectors are masked by the protocol before they leave.

    A sum cannot be looked at before it is added to, so a client with nothing good to send says so
    in the clear and sends zeros.
    """
    vectors = in_order(said)
    good = all(bool(torch.isfinite(vector).all()) for vector in vectors)
    if said.lost or not good:
        vectors = [torch.zeros_like(vector) for vector in vectors]
    cut = sum(int((vector.abs() > clip).sum()) for vector in vectors)
    refused = "" if good else "update with NaN or infinite values"
    words = Vouched(said.client, said.round, said.lost, refused, cut)
    parameters = ndarrays_to_parameters([vector.double().numpy() for vector in vectors])
    result = FitRes(Status(Code.OK, ""), parameters, 1, {**words._asdict()})
    return fitres_to_recorddict(result, keep_input=False)


def in_order(said: Reply) -> list[Tensor]:
    """The vectors of an upload in the order in which they are sent."""
    assert said.update is not None
    return [said.update, *(said.changes[name] for name in sorted(said.changes))]


def vouched(result: FitRes) -> Vouched:
    said = result.metrics
    return Vouched(
        str(said["client"]),
        int(said["round"]),
        bool(said["lost"]),
        str(said["refused"]),
        int(said["cut"]),
    )
