"""Driver 1: a federation in this process."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from functools import partial
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from turnout import round as protocol
from turnout.algorithm import Algorithm, Rows, State, Table, Zeros, in_memory
from turnout.assistant import Assistant
from turnout.clients import Clients
from turnout.data.augment import Augmentation
from turnout.data.pool import Pool
from turnout.engine import Choice, Engine, Outlook, Training, pick
from turnout.engine.contract import Block
from turnout.engine.crew import undisturbed
from turnout.engine.threaded import Precision
from turnout.errors import InputError, require
from turnout.evaluate import ClientScores, Evaluator, Metrics, score
from turnout.flight import arrive, depart, nothing_sent, require_own_pace
from turnout.models import Model, initialise
from turnout.parts.local import Local, Tensors
from turnout.products import quick
from turnout.ranks import Ranks
from turnout.room import require_room
from turnout.round import Broadcast
from turnout.state import ServerState, unsound
from turnout.tables import Tables
from turnout.world import World


class DivergenceError(ArithmeticError):
    """The model, or what is going to move it, is no longer finite."""

    def __init__(self, algorithm: str, round: int, what: str = "the model") -> None:
        super().__init__(f"{algorithm} diverged in round {round}: {what} is no longer finite")
        self.algorithm, self.round, self.what = algorithm, round, what


@dataclass(frozen=True)
class Simulation:
    """What stays fixed while a federation runs."""

    algorithm: Algorithm
    world: World
    training: Training
    chosen: Choice
    """The engine, and why it is this one."""
    assistant: Assistant | None
    """Trains at the server."""
    zeros: Zeros
    """Makes the tables that hold a vector for each client."""
    ranks: Ranks = Ranks()
    """Who else trains clients of this federation."""

    @property
    def engine(self) -> Engine:
        return self.chosen.engine

    @staticmethod
    def of(
        algorithm: Algorithm,
        world: World,
        model: Model,
        seed: int = 0,
        engine: str = "auto",
        dtype: torch.dtype = torch.float32,
        augment: Augmentation | None = None,
        rounds: int | None = None,
        precision: Precision = "full",
        tables: Tables = Tables(),
        ranks: Ranks = Ranks(),
    ) -> "Simulation":
        """Where `rounds` are given, engine "auto" tries engines if the run is long enough."""
        module = deepcopy(model.module).to(dtype).train()
        training = Training(
            replace(model, module=module), world.train, world.offsets, seed, dtype, augment
        )
        if world.participation.asynchronous:
            require_own_pace(algorithm, world.participation.name)
        server = _server_data(algorithm, world)
        _require_room(algorithm, world, server)
        outlook = _outlook(algorithm, world, rounds) if rounds and engine == "auto" else None
        chosen = pick(engine, training, outlook, precision)
        name = ranks.tell(chosen.name)  # Clocks differ, and with engines last bits.
        if name != chosen.name:
            chosen = pick(name, training, precision=precision)
        zeros = ranks.zeros(tables.zeros)
        work = chosen.engine.work
        assistant = None if server is None else Assistant.of(algorithm, training, server, work)
        return Simulation(algorithm, world, training, chosen, assistant, zeros, ranks)

    def evaluator(self, client_samples: int | None = None) -> Evaluator:
        training = self.training
        return Evaluator(
            self.world, training.model, training.layout, training.dtype, client_samples
        )


def _outlook(algorithm: Algorithm, world: World, rounds: int) -> Outlook:
    share = 1.0 if algorithm.assistance is None else algorithm.assistance.q
    some = [attendance.delivered for attendance in world.participation.rounds(min(rounds, 3))]
    return Outlook(algorithm, round(share * rounds), max(some, key=len))


def _server_data(algorithm: Algorithm, world: World) -> Pool | None:
    assistance = algorithm.assistance
    if assistance is None or not algorithm.assisted:
        return None
    if assistance.data == "everything":
        return world.train
    if world.server is None:
        often = f" with q = {assistance.q:g}" if assistance.when == "instead" else ""
        raise InputError(
            f"auxiliary data of the server is none; {algorithm.name}{often} must have some to train on"
        )
    return world.server


def _require_room(algorithm: Algorithm, world: World, server: Pool | None) -> None:
    """Refuse settings whose list of a round's samples is larger than this machine's memory."""
    held = int(np.diff(world.offsets).max())
    _require_room_for(algorithm.local, held, "local.", "the batches of a round")
    if server is not None and algorithm.assistance is not None:
        what = "the batches of a round of the server"
        _require_room_for(algorithm.assistance.local, len(server), "server_", what)


def _require_room_for(local: Local, held: int, prefix: str, what: str) -> None:
    batch = min(local.batch_size or held, held)
    steps = local.steps or (local.epochs or 1) * -(-held // batch)
    name = "epochs" if local.steps is None else "steps"
    require_room(prefix + name, local.steps or local.epochs, what, steps, batch)


@dataclass
class Progress:
    """Everything that changes while a federation runs."""

    server: ServerState
    presence: State
    """State of the participation process."""
    kept: dict[str, Tensor | Table]
    """[N, d] or [N, 1] each: what clients keep."""
    delivered: NDArray[np.int32]
    """[N]: how often each client's update has arrived."""
    influence: NDArray[np.float64]
    """[N]: sum over rounds of the effective weight ω·N/divisor of each delivered update."""
    flight: State = field(default_factory=dict)
    """What clients were sent who have not finished, where a round is an arrival."""


@dataclass(frozen=True)
class Round:
    """What happened in one round."""

    round: int
    by: str
    """"clients" or "server": who trained."""
    cohort: Rows
    delivered: Rows
    weights: NDArray[np.float64]
    """[delivered]: ω_i."""


def begin(simulation: Simulation, start: Tensor | None = None) -> Progress:
    """The state before round 0, from the model that the seed draws or from `start`."""
    training, world = simulation.training, simulation.world
    if start is None:
        initialise(training.model.module, training.seed)
        start = training.layout.flatten(training.model.module)
    require(
        start.shape == (training.layout.size,),
        "shape of the start",
        tuple(start.shape),
        f"({training.layout.size},), as the model has it",
    )
    clients = world.clients
    x = start.to(training.dtype)
    return Progress(
        server=protocol.start(simulation.algorithm, x, clients, world.shares, simulation.zeros),
        presence=world.participation.init(),
        kept={
            name: simulation.zeros(clients, x.new_empty(width))
            for name, width in protocol.kept_widths(simulation.algorithm, x).items()
        },
        delivered=np.zeros(clients, dtype=np.int32),
        influence=np.zeros(clients),
        flight=nothing_sent(clients, x) if world.participation.asynchronous else {},
    )


_KEPT, _MEMORY = "state.kept.", "state.server.memory."


def client_tables(simulation: Simulation) -> list[str]:
    """Names, in a checkpoint, of tables whose rows change by their own client's deliveries only."""
    algorithm = simulation.algorithm
    memory = algorithm.memory
    kept = [_KEPT + name for name in (*protocol.keeps(algorithm), *algorithm.local.rule.numbers)]
    return [
        *kept,
        *(_MEMORY + name for name in (memory.tables if memory else ())),
        "state.server.starts",
    ]


def made(zeros: Zeros) -> Callable[[str], Zeros]:
    """For tables of a checkpoint, by name: those that `begin` has `zeros` make, and the others."""
    return lambda name: zeros if name.startswith((_KEPT, _MEMORY)) else in_memory


def restore(simulation: Simulation, tree: dict[str, Any]) -> Progress:
    """The progress that a checkpoint's tree holds, if it is one of this simulation."""
    size, clients = simulation.training.layout.size, simulation.world.clients
    try:
        progress = Progress(**{**tree, "server": ServerState(**tree["server"])})
        kept = protocol.nothing_kept(simulation.algorithm, 0, progress.server.x)
        expected = size, clients, tuple(kept)
        found: object = (len(progress.server.x), len(progress.server.seen), tuple(progress.kept))
    except (TypeError, KeyError, AttributeError):  # another version's, or nobody's
        expected, found = (size, clients, ()), "unknown"
    require(found == expected, "(d, N, kept vectors) of the checkpoint", found, f"{expected}")
    return progress


class Turn(NamedTuple):
    """A round that has been opened."""

    round: int
    cohort: Rows
    rows: Rows
    """Those whose updates will arrive. One that gets lost changes nothing here, so the simulator
    does not compute it."""
    broadcast: Broadcast | None
    """None where the server trains by itself."""


def advance(simulation: Simulation, progress: Progress) -> Round:
    """Play one round; `progress` moves on in place. Raises `DivergenceError`."""
    turn = opened(simulation, progress)
    return closed(simulation, progress, turn, trained(simulation, progress, turn))


def opened(simulation: Simulation, progress: Progress) -> Turn:
    """Who comes, and what they are sent."""
    algorithm, number = simulation.algorithm, progress.server.round
    attendance, progress.presence = simulation.world.participation.step(progress.presence, number)
    if not protocol.asks_clients(algorithm, simulation.training.seed, number):
        nobody = np.zeros(0, dtype=np.int64)
        return Turn(number, nobody, nobody, None)
    cohort, rows, began = attendance
    if algorithm.selection is not None:
        seed = simulation.training.seed
        cohort, progress.server = protocol.select(algorithm, progress.server, cohort, seed)
        rows = np.intersect1d(cohort, rows, assume_unique=True)
    with undisturbed(simulation.engine.workers), quick(simulation.training.layout.size):
        _serve(simulation, progress, "beside")
    told = rows if began is None else began
    broadcast = protocol.announce(algorithm, progress.server, told)
    if not np.isfinite(broadcast.weights).all():
        client = told[~np.isfinite(broadcast.weights)][0]
        raise DivergenceError(algorithm.name, number, f"the weight of client {client}")
    progress.server = protocol.sent(progress.server, told)
    if began is not None:
        depart(progress.flight, began, broadcast)
        broadcast = arrive(progress.flight, rows, broadcast)
    return Turn(number, cohort, rows, broadcast)


def recall(progress: Progress, rows: Rows) -> Tensors:
    """What these clients have kept."""
    index = torch.from_numpy(rows)
    return {name: held[index] for name, held in progress.kept.items()}


def trained(simulation: Simulation, progress: Progress, turn: Turn) -> Iterator[Block]:
    """The cohort's blocks (or this rank's), trained when they are asked for."""
    algorithm, ranks = simulation.algorithm, simulation.ranks
    part, mine = turn.broadcast, turn.rows
    if part is None or not len(mine):
        return
    if ranks.count > 1:
        places = ranks.part(mine, _stored(algorithm))
        part, mine = part.part(places), mine[places]
    if len(mine):
        yield from simulation.engine.train(algorithm, part, mine, partial(recall, progress))


def closed(
    simulation: Simulation, progress: Progress, turn: Turn, blocks: Iterable[Block]
) -> Round:
    """Take in what was trained, and move on. Raises `DivergenceError`."""
    algorithm = simulation.algorithm
    workers = 1 if turn.broadcast is None else simulation.engine.workers
    with undisturbed(workers), quick(simulation.training.layout.size):
        if turn.broadcast is None:
            _serve(simulation, progress, "instead")
            happened = Round(turn.round, "server", turn.cohort, turn.rows, np.zeros(0))
        else:
            sent = turn.broadcast.weights
            weights = _take_in(simulation, progress, turn.rows, sent, blocks)
            _serve(simulation, progress, "after")
            happened = Round(turn.round, "clients", turn.cohort, turn.rows, weights)
        what = unsound(progress.server)
    if what is not None:
        raise DivergenceError(algorithm.name, turn.round, what)
    return happened


def _take_in(
    simulation: Simulation,
    progress: Progress,
    rows: Rows,
    weights: NDArray[np.float64],
    blocks: Iterable[Block],
) -> NDArray[np.float64]:
    """The weights that count: those that clients were sent, or those that updates are given."""
    algorithm, server = simulation.algorithm, progress.server
    found = torch.zeros(len(rows) if algorithm.reweighs else 0, dtype=server.x.dtype)
    with simulation.ranks.summing(lambda: [*protocol.sums(algorithm, server), found]):
        for block in blocks:
            upload = protocol.judged(algorithm, server, block.rows, block.upload)
            server = protocol.add(algorithm, server, block.rows, upload)
            if len(found):
                found[np.searchsorted(rows, block.rows)] = torch.from_numpy(upload.weights).to(
                    found
                )
            for name, held in progress.kept.items():
                held[torch.from_numpy(block.rows)] = block.kept[name]
    if algorithm.hears and len(rows):
        losses = simulation.ranks.tell(_losses(simulation, server.x, rows))
        if not np.isfinite(losses).all():
            client = rows[~np.isfinite(losses)][0]
            raise DivergenceError(algorithm.name, server.round, f"the loss of client {client}")
        server = protocol.hear(algorithm, server, rows, losses)
    server = protocol.count(algorithm, server, rows)
    progress.delivered[rows] += 1
    if len(found):
        weights = found.double().numpy()
    progress.influence[rows] += weights * protocol.scale(algorithm, server)
    progress.server = protocol.close(algorithm, server)
    return weights


def _losses(simulation: Simulation, x: Tensor, rows: Rows) -> NDArray[np.float64]:
    """Of the model x, on each of these clients' own data."""
    world, training = simulation.world, simulation.training
    first, sizes = world.offsets[rows], world.offsets[rows + 1] - world.offsets[rows]
    ends = np.cumsum(sizes)
    places = np.repeat(first - (ends - sizes), sizes) + np.arange(ends[-1])
    found = score(
        training.model,
        training.layout,
        x,
        world.train,
        training.dtype,
        places=torch.from_numpy(places),
    ).loss
    means: NDArray[np.float64] = np.add.reduceat(found, ends - sizes) / sizes
    return means


def _stored(algorithm: Algorithm) -> bool:
    """Is anything stored of each client?"""
    memory = algorithm.memory
    return bool(algorithm.local.rule.numbers or protocol.keeps(algorithm)) or (
        memory is not None and bool(memory.tables)
    )


def _serve(simulation: Simulation, progress: Progress, when: str) -> None:
    """The server trains, if this is where in the round it does."""
    algorithm, ranks = simulation.algorithm, simulation.ranks
    if simulation.assistant is None or algorithm.assistance is None:
        return
    if algorithm.assistance.when != when:
        return
    server = simulation.assistant.step(algorithm, progress.server)
    guide = None if server.guide is None else ranks.same(server.guide)
    progress.server = replace(server, x=ranks.same(server.x), guide=guide)


@dataclass(frozen=True)
class Cadence:
    """After which rounds the model is evaluated; always after the last."""

    test: int
    clients: int
    rounds: int

    def __post_init__(self) -> None:
        require(self.test >= 1, "evaluate_every", self.test, "at least 1")
        require(self.clients >= 1, "clients_every", self.clients, "at least 1")

    def due(self, done: int, every: int) -> bool:
        return done % every == 0 or done == self.rounds


def measure(
    evaluator: Evaluator, cadence: Cadence, progress: Progress, happened: Round
) -> Metrics | None:
    """What is reported of the model after this round, if anything is due."""
    done, x, weights = happened.round + 1, progress.server.x, happened.weights
    test, clients = cadence.due(done, cadence.test), cadence.due(done, cadence.clients)
    if not (test or clients):
        return None
    metrics: Metrics = {
        "round": done,
        "by": happened.by,
        "cohort": len(happened.cohort),
        "delivered": len(happened.delivered),
        "weight_mean": float(weights.mean()) if len(weights) else None,
        "weight_max": float(weights.max()) if len(weights) else None,
    }
    if test:
        metrics.update(evaluator.test(x))
        starts = progress.server.starts
        if starts is not None:  # clients have models of their own, and so there are two to judge
            of_clients = evaluator.test(starts.mean(0))
            metrics.update({f"clients_{name}": value for name, value in of_clients.items()})
    if clients:
        metrics.update(evaluator.over_clients(evaluator.clients(x), progress.delivered))
    return metrics


def client_table(simulation: Simulation, progress: Progress, scores: ClientScores) -> Clients:
    """A row a client: its data, how often it came, what it counted for, how it fares."""
    world, played = simulation.world, max(progress.server.client_round, 1)
    return Clients(
        {
            "samples": np.diff(world.offsets),
            # Of those who are there; how many of them a selection asks is nowhere known.
            "rate": None if simulation.algorithm.selection else world.participation.rates,
            "delivered": progress.delivered.copy(),
            "effective_weight": progress.influence / played,
            "loss": scores.loss,
            "accuracy": scores.accuracy,
        }
    )


@dataclass
class Federation:
    """A federation at play: what it is, where it stands, and how it is looked at."""

    simulation: Simulation
    progress: Progress
    cadence: Cadence
    evaluator: Evaluator
    looking: bool = True
    """Whether its model is evaluated here, and not by another rank."""
    seconds: float = 0.0
    """Of training."""
    evaluating: float = 0.0
    """Seconds, too."""
    diverged: DivergenceError | None = None
    x: Tensor = field(init=False)
    """The last model that was sound."""

    def __post_init__(self) -> None:
        self.x = self.progress.server.x

    @property
    def rounds(self) -> int:
        """How many have been played."""
        return self.progress.server.round

    @property
    def going(self) -> bool:
        return self.diverged is None and self.rounds < self.cadence.rounds

    def client_table(self) -> Clients:
        """A row a client, by the last sound model."""
        return client_table(self.simulation, self.progress, self.evaluator.clients(self.x))


def each(federations: Sequence[Federation]) -> list[Round | DivergenceError]:
    """One round of each, by itself."""
    found: list[Round | DivergenceError] = []
    for federation in federations:
        try:
            found.append(advance(federation.simulation, federation.progress))
        except DivergenceError as diverged:
            found.append(diverged)
    return found


def play(
    federations: Sequence[Federation],
    before: Callable[[], None] = lambda: None,
    after: Callable[[Federation, Round, Metrics | None], None] = lambda *happened: None,
    train: Callable[[Sequence[Federation]], Sequence[Round | DivergenceError]] = each,
) -> None:
    """Play rounds, in step, until the last one or until somebody has diverged.

    `before` is called ahead of every round, which it may prevent by raising; `after` for each
    federation that has played it soundly, with its metrics where some were due.
    """
    while any(federation.going for federation in federations):
        before()
        going, began = [one for one in federations if one.going], perf_counter()
        found = train(going)
        took = (perf_counter() - began) / len(going)
        for federation, happened in zip(going, found, strict=True):
            if isinstance(happened, DivergenceError):
                federation.diverged = happened
                continue
            federation.seconds, federation.x = (
                federation.seconds + took,
                federation.progress.server.x,
            )
            began, metrics = perf_counter(), None
            if federation.looking:
                metrics = measure(
                    federation.evaluator, federation.cadence, federation.progress, happened
                )
            federation.evaluating += perf_counter() - began
            after(federation, happened, metrics)
        if any(federation.diverged for federation in going):
            return
