"""Secure aggregation, the server's side: SecAgg+, of which the server sees only the sum.

Flower has SecAgg+ for its older API only. Its protocol runs here unchanged, once a client round,
between our orders and our `absorb`. Clients have applied their weights already, so all count for
one, and the sum is their mean times their number.
"""

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import torch
from flwr.app import ConfigRecord, Context, Message, RecordDict
from flwr.common import FitIns, FitRes, parameters_to_ndarrays
from flwr.server import LegacyContext
from flwr.server.workflow import SecAggPlusWorkflow
from flwr.server.workflow.constant import MAIN_CONFIGS_RECORD, MAIN_PARAMS_RECORD, Key
from flwr.server.workflow.secure_aggregation.secaggplus_workflow import WorkflowState
from flwr.serverapp import Grid
from torch import Tensor

from turnout.algorithm import Algorithm
from turnout.errors import InputError, require
from turnout.flower.clock import Clock
from turnout.flower.happened import Ask
from turnout.flower.mail import Mail
from turnout.flower.roster import Roster
from turnout.flower.rules import Rules
from turnout.flower.secure_answers import UPLOAD, Form, read
from turnout.flower.secure_wire import Vouched, fit_ins, vouched
from turnout.flower.validate import RefusedError
from turnout.flower.words import one_line

LOG = logging.getLogger("flwr.turnout")

_STAGES = (1 / 6, 2 / 6, 5 / 6, 1.0)
"""How much of a round may be over at the end of each stage; clients train in the third."""
_MODULUS = 2**32


@dataclass(frozen=True)
class SecureAggregation:
    """How the sum is formed."""

    clip: float = 8.0
    """Every number of an upload must lie in [−clip, clip]; what lies outside is cut off."""
    levels: int = 2**22
    """Steps into which that range is cut: an upload is off by 2·clip / levels a number at most."""
    threshold: float = 0.5
    """The share of the cohort that must stay to the end; so many together could read an upload."""

    def __post_init__(self) -> None:
        require(self.clip > 0, "secure.clip", self.clip, "above 0")
        require(2 <= self.levels < 2**31, "secure.levels", self.levels, "from 2 to 2**31 − 1")
        require(0 < self.threshold <= 1, "secure.threshold", self.threshold, "in (0, 1]")


def require_sums(algorithm: Algorithm) -> None:
    """Refuse an algorithm that would need more than the sum."""
    if algorithm.lateness is not None:
        raise InputError(
            f"{algorithm.name} weighs every update by how late it is, so it must see each of them; "
            "secure aggregation shows it only their sum, and of those alone that come in time"
        )
    if algorithm.gate is not None:
        raise InputError(
            f"{algorithm.name} counts each client once a window, so it must be able to leave out "
            "single updates; secure aggregation shows it only the sum of all of them"
        )
    if algorithm.hears:
        raise InputError(
            f"{algorithm.name} goes by the loss that each client reports, which secure aggregation does "
            "not hide; use a method that goes by sums, such as fedau or f3ast"
        )
    if algorithm.judge is not None:
        raise InputError(
            f"{algorithm.name} judges every update by the server's own, so it must see each of them; "
            "secure aggregation shows it only their sum"
        )
    if not algorithm.sums_only:
        raise InputError(
            f"{algorithm.name} keeps a table of clients' updates at the server, so it must see "
            "each of them; secure aggregation shows it only their sum. Where the method can, let "
            "the clients keep the memory, as mifa(memory='client') does"
        )


def require_plain(settings: SecureAggregation, roster: Roster, rules: Rules) -> None:
    """Refuse what secure aggregation does not go with."""
    for name, bad, value, right in (
        ("population", roster.grows, None, "a number or a list: clients count rounds they missed"),
        ("norm_bound", rules.norm_bound, rules.norm_bound, "none: nobody can measure an upload"),
        (
            "late_rounds",
            rules.late_rounds,
            rules.late_rounds,
            "0: a masked upload is of no use late",
        ),
        (
            "quorum",
            rules.quorum,
            rules.quorum,
            "none: the threshold of the protocol takes its place",
        ),
    ):
        require(not bad, f"{name} with secure aggregation", value, right)
    cohort = min(roster.size, rules.per_round or roster.size)
    require(
        cohort * settings.levels <= _MODULUS,
        "secure.levels",
        settings.levels,
        f"at most {_MODULUS // cohort} with {cohort} clients in a round, or their sum overflows; "
        "lower levels or rules.per_round",
    )


@dataclass(frozen=True)
class Sum:
    """What came of one round."""

    vectors: list[Tensor]
    """Sums over the clients in `of`, in the order in which they upload vectors."""
    of: list[tuple[Ask, Vouched]]
    """Whose uploads are in the sum, with what each says about itself in the clear. If too few
    stayed to the end it is nobody's."""
    refused: list[tuple[Ask, RefusedError]] = field(default_factory=list)
    """Whose answers were not what they had to be; they are in no sum."""


def aggregate(
    settings: SecureAggregation,
    grid: Grid,
    clock: Clock,
    letters: Sequence[tuple[Message, Ask]],
    opened: float,
    deadline: float,
    form: Form,
) -> Sum:
    """Run the protocol among these clients."""
    if len(letters) < 2:  # a sum over one would be its upload
        return Sum([], [])
    asks = {ask.node: ask for _, ask in letters}
    clip = settings.clip
    orders = [(ask.node, fit_ins(letter.content, ask.ticket, clip)) for letter, ask in letters]
    one = _OneRound([(_Proxy(node), order) for node, order in orders])
    state = RecordDict({MAIN_CONFIGS_RECORD: ConfigRecord({Key.CURRENT_ROUND: 1})})
    state[MAIN_PARAMS_RECORD] = letters[0][0].content.array_records["arrays"]
    ends = [opened + share * deadline for share in _STAGES]
    line = _Stages(grid, clock, ends, asks, form)
    # Of all that a Grid, a Strategy and a ClientManager are, the protocol calls only what is here.
    context = LegacyContext(
        Context(0, 0, {}, state, {}), strategy=cast(Any, one), client_manager=cast(Any, one)
    )
    protocol = _Protocol(
        1.0,
        settings.threshold,
        max_weight=1.0,
        clipping_range=float(settings.clip),
        quantization_range=settings.levels,
        modulus_range=_MODULUS,
    )
    try:
        protocol(cast(Any, line), context)
    except Exception as error:  # shares, for instance, that do not fit together
        sentence = "round %d: secure aggregation failed (%s: %s)"
        LOG.warning(sentence, letters[0][1].round + 1, type(error).__name__, one_line(error))
        return Sum([], [], line.refused)
    if not one.results:
        return Sum([], [], line.refused)
    means = parameters_to_ndarrays(one.results[0][1].parameters)
    count = len(one.results)
    of = [(asks[proxy.node_id], vouched(result)) for proxy, result in one.results]
    return Sum([torch.from_numpy(count * mean) for mean in means], of, line.refused)


class _Protocol(SecAggPlusWorkflow):
    """Flower's protocol, mended: as of 1.41 one client that leaves early voids the whole round.

    At the end it asks for the shares of every client that did not deliver, and there are none of
    those who left before they had shared their keys. Nobody has masked anything with theirs.
    """

    def share_keys_stage(self, grid: Grid, context: LegacyContext, state: WorkflowState) -> bool:
        shared = super().share_keys_stage(grid, context, state)
        state.sampled_node_ids = set(state.active_node_ids)
        state.nid_to_neighbours = {
            node: neighbours & state.active_node_ids
            for node, neighbours in state.nid_to_neighbours.items()
        }
        return shared


@dataclass
class _Proxy:
    node_id: int


@dataclass
class _OneRound:
    """The strategy and the client manager that the protocol asks."""

    orders: list[tuple[_Proxy, FitIns]]
    results: list[tuple[_Proxy, FitRes]] = field(default_factory=list)

    def configure_fit(self, *_: object) -> list[tuple[_Proxy, FitIns]]:
        return self.orders

    def aggregate_fit(
        self, _: int, results: list[tuple[_Proxy, FitRes]], failures: object
    ) -> tuple[None, dict[str, Any]]:
        self.results = results
        return None, {}

    def num_available(self) -> int:
        return len(self.orders)


@dataclass
class _Stages:
    """The line on which the protocol sends and receives, each stage with an end."""

    grid: Grid
    clock: Clock
    ends: list[float]
    asks: dict[int, Ask]
    """By node."""
    form: Form
    refused: list[tuple[Ask, RefusedError]] = field(default_factory=list)

    def send_and_receive(
        self, messages: Iterable[Message], *, timeout: float | None = None
    ) -> list[Message]:
        began, until, stage = self.clock.now(), self.ends.pop(0), 3 - len(self.ends)
        letters = []
        for message in messages:
            ask = self.asks[message.metadata.dst_node_id]
            if stage == UPLOAD and not ask.heeded:
                continue  # as if it had left: what is in the sum cannot be dropped afterwards
            message.metadata.ttl = max(until - began, 1.0)
            letters.append((message, ask))
        answers: dict[int, Message] = {}
        for ask, answer in Mail[Ask](self.grid, self.clock).exchange(letters, until):
            try:
                if not answer.has_error():
                    read(stage, answer, ask, self.form)
                answers.setdefault(ask.node, answer)
            except RefusedError as refusal:
                self.refused.append((ask, refusal))
        return list(answers.values())
