"""What the answers in each stage of SecAgg+ must be like, before Flower's protocol reads them.

The protocol takes them as they come, and one that it cannot read would end the ServerApp. Whoever
sends one is treated as if it had left. Against a client that keeps to the form and lies in the
values there is no defence here: what is hidden cannot be checked.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from flwr.app import ConfigRecord, Message
from flwr.common import bytes_to_ndarray
from flwr.common.secure_aggregation.secaggplus_constants import RECORD_KEY_CONFIGS, Key
from flwr.compat.common.recorddict_compat import recorddict_to_fitres
from flwr.supercore.primitives.asymmetric import bytes_to_public_key

from turnout.flower.happened import Ask
from turnout.flower.secure_wire import vouched
from turnout.flower.validate import RefusedError, vouch
from turnout.flower.words import one_line


class Form(NamedTuple):
    """What all answers of a round have in common."""

    nodes: frozenset[int]
    """Who takes part."""
    vectors: int
    """How many vectors an upload holds …"""
    size: int
    """… and how long each is."""


def read(stage: int, answer: Message, ask: Ask, form: Form) -> None:
    """Raise `RefusedError` unless this stage, counted from 0, can go on with a client's answer."""
    try:
        _FORMS[stage](answer.content.config_records[RECORD_KEY_CONFIGS], form)
        words = vouched(recorddict_to_fitres(answer.content, True)) if stage == UPLOAD else None
    except Exception as error:  # whatever a stranger's bytes can do to a parser
        why = f"{type(error).__name__}: {one_line(error)}"
        raise RefusedError(f"not an answer that secure aggregation can read ({why})") from None
    if words is not None:
        vouch(words, ask.claim, ask.ticket)


def _keys(record: ConfigRecord, form: Form) -> None:
    for key in (Key.PUBLIC_KEY_1, Key.PUBLIC_KEY_2):
        bytes_to_public_key(_all([record[key]], bytes)[0])


def _shares(record: ConfigRecord, form: Form) -> None:
    _addressed(record[Key.DESTINATION_LIST], record[Key.CIPHERTEXT_LIST], form)


def _masked(record: ConfigRecord, form: Form) -> None:
    arrays = [bytes_to_ndarray(piece) for piece in _all(record[Key.MASKED_PARAMETERS], bytes)]
    shapes = [array.shape for array in arrays]  # the first one holds the sum of the weights
    due = [(1,)] + form.vectors * [(form.size,)]
    if shapes != due or any(array.dtype != np.int64 for array in arrays):
        raise ValueError(f"arrays of shapes {shapes}, not int64 of {due}")


def _unmasking(record: ConfigRecord, form: Form) -> None:
    _addressed(record[Key.NODE_ID_LIST], record[Key.SHARE_LIST], form)


_FORMS: tuple[Callable[[ConfigRecord, Form], None], ...] = (_keys, _shares, _masked, _unmasking)
UPLOAD = 2


def _addressed(nodes: Any, pieces: Any, form: Form) -> None:
    """Pieces of bytes, one for each of some nodes."""
    whom = _all(nodes, int)
    if len(set(whom)) != len(whom) or not form.nodes.issuperset(whom):
        raise ValueError("pieces for nodes that are not asked, or two for one")
    if len(_all(pieces, bytes)) != len(whom):
        raise ValueError(f"{len(pieces)} pieces for {len(whom)} nodes")


def _all(values: Any, kind: type) -> list[Any]:
    if not isinstance(values, list) or any(type(value) is not kind for value in values):
        raise TypeError(f"values that are not all {kind.__name__}")
    return values
