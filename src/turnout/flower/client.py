"""A Flower ClientApp that trains as the simulator's clients do: same steps, same draws."""

from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace

import numpy as np
from flwr.app import Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from numpy.typing import NDArray
from torch import Tensor

from turnout.data.augment import Augmentation
from turnout.data.pool import Pool
from turnout.engine import choose_engine
from turnout.engine.contract import Training
from turnout.errors import InputError
from turnout.evaluate import Evaluator, score
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
from turnout.flower.words import one_line
from turnout.models import Model
from turnout.participation.always import always
from turnout.parts.local import Tensors
from turnout.world import World

LoadData = Callable[[Context], Pool | tuple[Pool, Pool]]
"""The client's own data: to train on, and, where there is a second pool, to evaluate on."""


def client_app(
    algorithm: Choice,
    model: Model,
    load_data: LoadData,
    *,
    name: Naming = stable_name,
    engine: str = "reference",
    augment: Augmentation | None = None,
    secure: bool = False,
) -> ClientApp:
    """A ClientApp that trains `model` on the client's own data by the algorithm's local rule.

    The algorithm must be the server's, or a function that makes it from the run's configuration.
    `load_data(context)` returns the client's `Pool`, or a pair of pools: one to train and one to
    evaluate on. It is called for every message, so let it cache what is slow. `name(context)` is
    the client's name in the roster. `secure` goes with a Strategy that has secure aggregation: then
    the client keeps its own participation history, weighs its upload by it, and masks it.
    """
    app = ClientApp()
    answer_greetings(app, name)

    def work(message: Message, context: Context) -> Reply:
        ticket, named, means = messages.read_order(message.content)
        module, x = _receive(model, named)
        chosen = choose(algorithm, context)
        vectors = recall_vectors(chosen, context, ticket, x)
        if vectors is None:
            return lost(chosen, name(context), ticket, x)
        if secure:
            ticket = ticket._replace(weight=own_weight(chosen.weight, context, ticket))
        pool, _ = _pools(load_data(context))
        offsets = _alone(ticket.row, len(pool))
        training = Training(module, pool, offsets, ticket.seed, x.dtype, augment)
        (block,) = choose_engine(engine, training).train(
            chosen, ticket.broadcast(x, means), np.array([ticket.row]), lambda _: vectors
        )
        pend_vectors(context, ticket, block.kept)
        metrics = MetricRecord({"num-examples": len(pool)})
        if chosen.hears:
            scores = score(module, training.layout, x, pool, x.dtype)
            metrics[messages.LOSS] = float(scores.loss.mean())
        return delivery(name(context), ticket, block.upload, metrics)

    answer_orders(app, work, secure)

    @app.evaluate()
    def evaluate(message: Message, context: Context) -> Message:
        module, x = _receive(model, messages.read_model(message.content))
        _, pool = _pools(load_data(context))
        world = World(pool, _alone(0, len(pool)), pool, always(1))
        scores = Evaluator(world, module, Layout.of(module.module), x.dtype).test(x)
        metrics = MetricRecord({"num-examples": len(pool), **scores})
        return Message(RecordDict({"metrics": metrics}), reply_to=message)

    return app


def _pools(data: Pool | tuple[Pool, Pool]) -> tuple[Pool, Pool]:
    pools = (data, data) if isinstance(data, Pool) else data
    if not (isinstance(pools, tuple) and [type(pool) for pool in pools] == [Pool, Pool]):
        raise InputError(
            f"load_data returned {one_line(type(data).__name__)!r}; it must return a "
            "turnout.data.Pool(inputs, targets), or two: to train on and to evaluate on"
        )
    if not all(len(pool) for pool in pools):
        raise InputError("load_data returned no samples; a client must have at least one")
    return pools


def _alone(row: int, samples: int) -> NDArray[np.int64]:
    """Offsets of a world in which client `row` holds everything: its draws are keyed by its row."""
    offsets = np.zeros(row + 2, dtype=np.int64)
    offsets[-1] = samples
    return offsets


def _receive(model: Model, named: Tensors) -> tuple[Model, Tensor]:
    """The model with its frozen parts as the server sent them, and the vector that is trained."""
    module = deepcopy(model.module)
    layout = Layout.of(module)
    x = layout.flatten(named)
    rest = {name: tensor for name, tensor in named.items() if name not in layout.names}
    module.to(x.dtype).train().load_state_dict(rest, strict=False)
    return replace(model, module=module), x
