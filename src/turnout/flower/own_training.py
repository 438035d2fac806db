"""Turnout around a training loop that a person already has."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from flwr.app import Context, Message, MetricRecord
from flwr.clientapp import ClientApp
from torch import Tensor

from turnout import round as protocol
from turnout.algorithm import Algorithm
from turnout.errors import InputError
from turnout.flower import messages
from turnout.flower.answers import (
    Choice,
    answer_greetings,
    choose,
    delivery,
    lost,
    pend_vectors,
    recall_vectors,
    reply,
)
from turnout.flower.naming import Naming, stable_name
from turnout.flower.packing import Packing, tensors
from turnout.parts.local import LocalRule

Train = Callable[[Message, Context], Message]


def train(
    app: ClientApp, algorithm: Choice, *, name: Naming = stable_name
) -> Callable[[Train], Train]:
    """Use in place of `@app.train()`, and keep the function below it as it is.

    That function reads the model from `message.content["arrays"]` and answers with its trained
    model under "arrays" and its metrics under "metrics", as in Flower's own examples. Its step
    size, epochs and batches are its own business; the algorithm's local rule is not used.
    """
    if isinstance(algorithm, Algorithm):
        _require_free_steps(algorithm)
    answer_greetings(app, name)

    def around(own: Train) -> Train:
        @app.train()
        def train(message: Message, context: Context) -> Message:
            ticket, named, means = messages.read_order(message.content)
            packing = Packing.around(named)
            x = packing.start
            chosen = _require_free_steps(choose(algorithm, context))
            vectors = recall_vectors(chosen, context, ticket, x)
            if vectors is None:
                return reply(message, lost(chosen, name(context), ticket, x))
            answer = own(message, context)
            if answer.has_error():
                return answer
            there = packing.layout.flatten(tensors(answer.content.array_records["arrays"])).to(x)
            ended = replace(chosen, local=replace(chosen.local, rule=_end_at(there)))
            upload, after = protocol.client_step(
                ended, ticket.broadcast(x, means), _NoSteps(), vectors
            )
            metrics = answer.content.metric_records.get("metrics") or MetricRecord()
            pend_vectors(context, ticket, after)
            return reply(message, delivery(name(context), ticket, upload, metrics))

        return own

    return around


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
