"""Turnout around a training loop that a person already has."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from flwr.app import Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from torch import Tensor

from turnout import round as protocol
from turnout.algorithm import Algorithm
from turnout.errors import InputError
from turnout.flat import Layout
from turnout.flower import messages
from turnout.flower.answers import (
    Choice,
    answer_greetings,
    answer_orders,
    choose,
    delivery,
    lost,
    pend_vectors,
    recall_vectors,
)
from turnout.flower.history import own_weight
from turnout.flower.messages import Reply
from turnout.flower.naming import Naming, stable_name
from turnout.flower.packing import Packing, tensors
from turnout.flower.words import one_line
from turnout.models import Model
from turnout.parts.local import LocalRule

Train = Callable[[Message, Context], Message]


def train(
    app: ClientApp,
    algorithm: Choice,
    *,
    name: Naming = stable_name,
    model: Model | None = None,
    secure: bool = False,
) -> Callable[[Train], Train]:
    """Use in place of `@app.train()`, and keep the function below it as it is.

    That function reads the model from `message.content["arrays"]` and answers with its trained
    model under "arrays" and its metrics under "metrics", as in Flower's own examples. Its step
    size, epochs and batches are its own business; the algorithm's local rule is not used. `model`
    is needed where parameters are frozen or tied; `secure` goes with a Strategy that has secure
    aggregation.
    """
    if isinstance(algorithm, Algorithm):
        _require_free_steps(algorithm)
    answer_greetings(app, name)

    def around(own: Train) -> Train:
        def work(message: Message, context: Context) -> Reply:
            ticket, named, means = messages.read_order(message.content)
            packing = Packing.around(named, model)
            x = packing.start
            chosen = _require_free_steps(choose(algorithm, context))
            vectors = recall_vectors(chosen, context, ticket, x)
            if vectors is None:
                return lost(chosen, name(context), ticket, x)
            if secure:
                ticket = ticket._replace(weight=own_weight(chosen.weight, context, ticket))
            answer = own(message, context)
            if answer.has_error():
                raise RuntimeError(one_line(answer.error.reason or "an error without a reason"))
            there = _trained(answer.content, packing.layout).to(x)
            ended = replace(chosen, local=replace(chosen.local, rule=_end_at(there)))
            upload, after = protocol.client_step(
                ended, ticket.broadcast(x, means), _NoSteps(), vectors
            )
            metrics = answer.content.metric_records.get("metrics") or MetricRecord()
            pend_vectors(context, ticket, after)
            return delivery(name(context), ticket, upload, metrics)

        answer_orders(app, work, secure)
        return own

    return around


def _trained(content: RecordDict, layout: Layout) -> Tensor:
    """The vector of the model that a training function answers with."""
    if "arrays" not in content.array_records:
        found = ", ".join(map(repr, content)) or "nothing"
        raise InputError(
            f"the training function answers with {one_line(found)}; its trained model must be an "
            "ArrayRecord under 'arrays'"
        )
    return layout.flatten(tensors(content.array_records["arrays"]))


def _require_free_steps(algorithm: Algorithm) -> Algorithm:
    if algorithm.local.rule.kept:
        raise InputError(
            f"{algorithm.name} steers every local step, which a training loop of one's own does "
            "not let it; use client_app, or an algorithm without control variates"
        )
    return algorithm


def _end_at(there: Tensor) -> LocalRule:
    """The local rule of a client whose steps have been taken elsewhere, as far as `there`."""
    return LocalRule(
        begin=lambda x, kept, told: (there[None].clone(), {}),
        step=lambda gradient, x, lr, state: (x, state),
    )


@dataclass(frozen=True)
class _NoSteps:
    steps: Sequence[int] = (0,)

    def gradient(self, x: Tensor, step: int) -> Tensor:
        raise AssertionError("there is no step to take")
