"""One round as pure functions. Both drivers call these; no other file does round arithmetic.

    state = start(algorithm, x, clients)
    each round, if `asks_clients(algorithm, seed, round)`:
        state = server_step(algorithm, state, work)                      # if it trains "beside"
        rows, state = select(algorithm, state, available, seed)          # whom to ask
        broadcast = announce(algorithm, state, rows)
        upload, kept = client_step(algorithm, broadcast, work, kept)     # at the clients
        state = absorb(algorithm, state, rows, upload)                   # any number of times
        state = close(algorithm, state)                                  # also if nobody came
        state = server_step(algorithm, state, work)                      # if it trains "after"
    and otherwise:
        state = server_step(algorithm, state, work)                      # "instead"

Models are flat vectors [d], cohorts are blocks [C, d]. Functions consume the state that they are
given: tables of a million clients are updated in place, so keep no alias of an old state.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from turnout import draws
from turnout.algorithm import Algorithm, Rows, Selection, State, Zeros, in_memory
from turnout.errors import InputError, require
from turnout.parts.local import Ended, LocalRule, Rate, Tensors, Told
from turnout.parts.memory import begin
from turnout.state import ServerState, tally_of

MEMORY = "memory"
"""The name under which a client keeps h_i when memory is held by clients."""


class Work(Protocol):
    """What an engine offers for a block of clients: gradients on each one's next mini-batch."""

    @property
    def steps(self) -> Sequence[int]:
        """Local steps of each row, never increasing, so that those still at work are a prefix."""
        ...

    def gradient(self, x: Tensor, step: int) -> Tensor:
        """[c, d] → [c, d]: each row's mean gradient over its mini-batch number `step`."""
        ...


class Broadcast(NamedTuple):
    """What the server sends to a cohort."""

    x: Tensor
    """[d], or [C, d] where each client goes on from a model of its own."""
    round: int
    """The client round, for weights that clients compute themselves."""
    lr: Rate
    weights: NDArray[np.float64]
    """[C]: ω_i, by the participation history before this round."""
    shares: NDArray[np.float64]
    """[C]: N·q_i; folds the objective's weights into F_i."""
    means: Tensors
    """What the server knows of vectors that clients keep."""

    def part(self, rows: slice | list[int]) -> "Broadcast":
        """The broadcast to some of the cohort."""
        several = self.x.dim() == 2
        return self._replace(
            x=self.x[rows] if several else self.x,
            lr=self.lr[rows] if isinstance(self.lr, Tensor) else self.lr,
            weights=self.weights[rows],
            shares=self.shares[rows],
        )


class Upload(NamedTuple):
    """What a block of clients sends back."""

    update: Tensor
    """[C, d]: ω_i·(Δ_i − β·h_i), ready to be summed; the plain Δ_i if the server holds memory."""
    weights: NDArray[np.float64]
    """[C]: the ω_i to apply to plain updates."""
    changes: Tensors
    """[C, d] each: how the vectors that clients keep have changed; the server needs their sums."""
    losses: NDArray[np.float64] | None = None
    """[C]: where the selection goes by them, of the model that each was sent."""


def start(
    algorithm: Algorithm,
    x: Tensor,
    clients: int,
    shares: NDArray[np.float64] | None = None,
    zeros: Zeros = in_memory,
) -> ServerState:
    """The server's state before round 0, for a population of `clients`."""
    memory, rule, assistance = algorithm.memory, algorithm.local.rule, algorithm.assistance
    if shares is not None:
        shares = np.asarray(shares, dtype=np.float64)
        right = f"one number for each of {clients} clients, none negative, with sum 1"
        good = shares.shape == (clients,) and bool((shares >= 0).all())
        require(good and abs(float(shares.sum()) - 1) < 1e-6, "shares", shares, right)
    once = algorithm.gate is not None and algorithm.gate.once
    guided = assistance is not None and assistance.when == "beside"
    return ServerState(
        x=x.clone(),
        round=0,
        client_round=0,
        weight=algorithm.weight.init(clients),
        memory=begin(memory, clients, x, zeros) if memory else {},
        transform=algorithm.transform.init(x),
        means={name: torch.zeros_like(x) for name in rule.shared},
        shares=None if shares is None else shares * clients,
        seen=np.zeros(clients, dtype=bool),
        seen_count=0,
        total=torch.zeros_like(x),
        contributed=np.zeros(clients, dtype=bool) if once else None,
        starts=x.repeat(clients, 1) if algorithm.own_start else None,
        arrived=np.zeros(clients, dtype=bool) if algorithm.own_start else None,
        changes={name: torch.zeros_like(x) for name in rule.shared},
        assistance=assistance.share.init(clients) if assistance else {},
        guide=torch.zeros_like(x) if guided else None,
        trust=x.new_zeros(1) if algorithm.judge else None,
        selection=algorithm.selection.init(clients) if algorithm.selection else {},
        sent=np.zeros(clients, dtype=np.int64) if algorithm.lateness else None,
    )


def asks_clients(algorithm: Algorithm, seed: int, round: int) -> bool:
    """Is this a client round? With assistance, with probability q (SAFARI, Algorithm 1)."""
    q = 1.0 if algorithm.assistance is None else algorithm.assistance.q
    if q in (0.0, 1.0):
        return q == 1.0
    return bool(draws.generator(seed, "assistance", round).random() < q)


def select(
    algorithm: Algorithm, state: ServerState, available: Rows, seed: int
) -> tuple[Rows, ServerState]:
    """Who of these is asked in the coming client round: all, unless the algorithm selects."""
    if algorithm.selection is None:
        return available, state
    cohort, known = chosen(
        algorithm.selection,
        state.selection,
        state.client_round,
        available,
        len(state.seen),
        state.shares,
        seed,
    )
    return cohort, replace(state, selection=known)


def chosen(
    selection: Selection,
    known: State,
    round: int,
    available: Rows,
    clients: int,
    shares: NDArray[np.float64] | None,
    seed: int,
) -> tuple[Rows, State]:
    """Of `select` what needs nothing but who was there: logs are replayed by it."""
    draw = draws.generator(seed, "selection", round)
    everybodys = np.ones(clients) if shares is None else shares
    return selection.step(known, round, available, everybodys, draw)


def announce(algorithm: Algorithm, state: ServerState, rows: Rows) -> Broadcast:
    """What these clients are sent in the coming client round."""
    own, selection = state.starts, algorithm.selection
    weights = algorithm.weight.weigh(state.weight, state.client_round, rows)
    if selection is not None and selection.weigh is not None:
        weights = weights * selection.weigh(state.selection, rows)
    return Broadcast(
        x=state.x if own is None else own[torch.from_numpy(rows)],
        round=state.client_round,
        lr=algorithm.local.rate(state.round),
        weights=weights,
        shares=np.ones(len(rows)) if state.shares is None else state.shares[rows],
        means=state.means,
    )


def sent(state: ServerState, rows: Rows) -> ServerState:
    """These clients have been sent the model as it is."""
    if state.sent is not None:
        state.sent[rows] = state.version
    return state


def keeps(algorithm: Algorithm) -> tuple[str, ...]:
    """Names of the vectors [d] that each client keeps between rounds."""
    memory = algorithm.memory
    held = (MEMORY,) if memory and memory.recall is None else ()
    return held + algorithm.local.rule.kept


def kept_widths(algorithm: Algorithm, x: Tensor) -> dict[str, int]:
    """How many numbers a client keeps under each name: d of a vector, 1 of a number."""
    widths = {name: len(x) for name in keeps(algorithm)}
    return widths | dict.fromkeys(algorithm.local.rule.numbers, 1)


def nothing_kept(algorithm: Algorithm, clients: int, x: Tensor) -> Tensors:
    """What so many clients keep before their first round: vectors [N, d] and numbers [N, 1]."""
    widths = kept_widths(algorithm, x).items()
    return {name: x.new_zeros(clients, width) for name, width in widths}


def client_step(
    algorithm: Algorithm, broadcast: Broadcast, work: Work, kept: Tensors
) -> tuple[Upload, Tensors]:
    """Local training of a block of clients, and what they upload and keep.

    A client commits what it keeps only when its upload has been delivered.
    """
    ended = _descend(algorithm.local.rule, broadcast, work, kept)
    return _uploaded(algorithm, broadcast, ended, kept)


class Part(NamedTuple):
    """The clients of one federation in a block that several share."""

    algorithm: Algorithm
    broadcast: Broadcast
    kept: Tensors
    places: Tensor
    """[C]: where in the block each of them is."""


def client_steps(parts: Sequence[Part], work: Work) -> list[tuple[Upload, Tensors]]:
    """`client_step` for clients of several federations in one block.

    Step sizes may differ; local rules must be one and the same rule. What a federation itself has
    to say (means, rounds, weights, memory) is dealt with part by part, before and after the steps.
    """
    rule, count = parts[0].algorithm.local.rule, len(work.steps)
    steps = torch.tensor(work.steps)[:, None]
    like = parts[0].broadcast.x
    x, state = like.new_empty(count, like.shape[-1]), Tensors()
    rates: list[Rate] = []
    for part in parts:
        sent = part.broadcast
        own = sent.x.expand(len(part.places), -1).clone()
        x[part.places], begun = rule.begin(own, part.kept, Told(sent.means, sent.round))
        for name, value in begun.items():
            whole = state.setdefault(name, value.new_empty(count, *value.shape[1:]))
            whole[part.places] = value
        rates.append(sent.lr)
    lr = rates[0]
    if any(isinstance(rate, Tensor) or rate != lr for rate in rates):
        lr = x.new_empty(count, 1)
        for part in parts:
            lr[part.places] = torch.as_tensor(part.broadcast.lr, dtype=x.dtype)
    x, state = _walk(rule, x, lr, state, work)
    found = []
    for part in parts:
        ended = Ended(
            x[part.places] - part.broadcast.x,
            part.broadcast.lr,
            steps[part.places].to(x),
            {name: value[part.places] for name, value in state.items()},
        )
        found.append(_uploaded(part.algorithm, part.broadcast, ended, part.kept))
    return found


def _uploaded(
    algorithm: Algorithm, broadcast: Broadcast, ended: Ended, kept: Tensors
) -> tuple[Upload, Tensors]:
    """What a block uploads and keeps when its local steps are over."""
    rule, memory = algorithm.local.rule, algorithm.memory
    update, after = rule.end(ended, kept, Told(broadcast.means, broadcast.round))
    # The shares weigh what is averaged over clients, or its mean would belong to another objective.
    shares, weights = broadcast.shares, broadcast.weights
    changes = {name: _scaled(shares, after[name] - kept[name]) for name in rule.shared}
    if memory is None:
        return Upload(_scaled(shares * weights, update), weights, changes), after
    update = _scaled(shares, update)
    if memory.recall is None:
        held = kept[MEMORY]
        after = {**after, MEMORY: update}
        changes[MEMORY] = update - held
        update = _scaled(weights, torch.sub(update, held, alpha=algorithm.beta))
    return Upload(update, broadcast.weights, changes), after


def _descend(rule: LocalRule, broadcast: Broadcast, work: Work, kept: Tensors) -> Ended:
    """The local steps of a block."""
    count = len(work.steps)
    origin = broadcast.x.expand(count, -1)
    own = origin.clone()
    x, state = rule.begin(own, kept, Told(broadcast.means, broadcast.round))
    x, state = _walk(rule, x, broadcast.lr, state, work)
    steps = torch.tensor([[s] for s in work.steps], dtype=x.dtype, device=x.device)
    # In memory that is ours: x may be the client's, if that is where the rule began.
    return Ended(torch.sub(x, origin, out=own), broadcast.lr, steps, state)


def _walk(
    rule: LocalRule, x: Tensor, rate: Rate, state: Tensors, work: Work
) -> tuple[Tensor, Tensors]:
    """All local steps; those that have finished stay where they are."""
    count = live = len(work.steps)
    for step in range(work.steps[0]):
        while work.steps[live - 1] <= step:
            live -= 1
        if live == count:
            x, state = rule.step(work.gradient(x, step), x, rate, state)
            continue
        rows = slice(0, live)
        lr = rate[rows] if isinstance(rate, Tensor) else rate
        part = x[rows]
        x[rows], fresh = rule.step(
            work.gradient(part, step), part, lr, {name: held[rows] for name, held in state.items()}
        )
        for name, value in fresh.items():
            state[name][rows] = value
    return x, state


def _scaled(values: NDArray[np.float64], block: Tensor) -> Tensor:
    """Each row times its value; never in place, since a rule may keep Δ itself."""
    if (values == 1).all():
        return block
    return torch.from_numpy(values).to(block)[:, None] * block


def absorb(algorithm: Algorithm, state: ServerState, rows: Rows, upload: Upload) -> ServerState:
    """Take in the uploads of these clients. Delivery, not asking, is what counts as participation."""
    state = add(algorithm, state, rows, judged(algorithm, state, rows, upload))
    if upload.losses is not None:
        state = hear(algorithm, state, rows, upload.losses)
    return count(algorithm, state, rows)


def hear(
    algorithm: Algorithm, state: ServerState, rows: Rows, losses: NDArray[np.float64]
) -> ServerState:
    """Of `absorb` what the selection is told."""
    if algorithm.selection is not None and algorithm.selection.hear is not None:
        state.selection = algorithm.selection.hear(state.selection, rows, losses)
    return state


def judged(algorithm: Algorithm, state: ServerState, rows: Rows, upload: Upload) -> Upload:
    """The uploads as they count, where the server goes by how late each is, or by its own update."""
    if algorithm.lateness is not None and state.sent is not None:
        factor = algorithm.lateness(state.version - state.sent[rows])
        upload = upload._replace(
            update=_scaled(factor, upload.update), weights=upload.weights * factor
        )
    if algorithm.judge is None or state.guide is None:
        return upload
    updates, trust = algorithm.judge(upload.update, state.guide)
    weights = upload.weights * trust.double().cpu().numpy()
    return upload._replace(update=trust[:, None] * updates, weights=weights)


def add(algorithm: Algorithm, state: ServerState, rows: Rows, upload: Upload) -> ServerState:
    """Of `absorb` what concerns vectors: sums, and the memory of these clients."""
    memory = algorithm.memory
    # Clients commit what they keep with every delivery, also with one that a gate does not count.
    for name, total in state.changes.items():
        total += upload.changes[name].sum(0)
    if memory is not None and memory.recall is None:
        state.memory = memory.store(state.memory, rows, upload.changes[MEMORY])
    if state.contributed is not None:
        fresh = ~state.contributed[rows]
        rows, upload = rows[fresh], _select(upload, fresh)
    if state.trust is not None:
        state.trust += float(upload.weights.sum())
    if state.starts is not None:
        # What counts is where the client got to, x_i + ω_i·Δ_i, seen from x.
        state.total += (state.starts[torch.from_numpy(rows)] - state.x).sum(0)
    if memory is None or memory.recall is None:
        state.total += upload.update.sum(0)
    else:
        held = memory.recall(state.memory, rows)
        weights = torch.from_numpy(upload.weights).to(state.x)
        state.total += weights @ torch.sub(upload.update, held, alpha=algorithm.beta)
        state.memory = memory.store(state.memory, rows, upload.update)
    return state


def count(algorithm: Algorithm, state: ServerState, rows: Rows) -> ServerState:
    """Of `absorb` the rest: who has taken part. Each client counts once a round, after its `add`."""
    state = _note(algorithm, state, rows)
    if state.arrived is not None:
        state.arrived[rows] = True
    if state.contributed is not None:
        rows = rows[~state.contributed[rows]]
        state.contributed[rows] = True
    state.delivered += len(rows)
    return state


def sums(algorithm: Algorithm, state: ServerState) -> list[Tensor]:
    """What `add` adds to, in place: where a cohort is trained in several places, they sum up these.

    Not all need be zero when a round begins: a gate and a rule's window hold some for longer.
    """
    memory = algorithm.memory
    always = [state.total, *state.changes.values()] + ([] if state.trust is None else [state.trust])
    if memory is None:
        return always
    if memory.sums is None:
        raise InputError(
            f"memory.sums of {algorithm.name} is None; it must name what `store` adds to, for a cohort "
            "that is trained in several places"
        )
    remembered = [state.memory[name] for name in memory.sums]
    return [*always, *remembered]


def _note(algorithm: Algorithm, state: ServerState, rows: Rows) -> ServerState:
    """These clients delivered in the open client round."""
    state.weight = algorithm.weight.observe(state.weight, state.client_round, rows)
    state.transform = algorithm.transform.observe(state.transform, rows)
    if algorithm.assistance is not None:
        state.assistance = algorithm.assistance.share.observe(state.assistance, rows)
    state.seen_count += int(np.count_nonzero(~state.seen[rows]))
    state.seen[rows] = True
    return state


def _select(upload: Upload, which: NDArray[np.bool_]) -> Upload:
    index = torch.from_numpy(which)
    return Upload(
        upload.update[index],
        upload.weights[which],
        {name: change[index] for name, change in upload.changes.items()},
    )


def scale(algorithm: Algorithm, state: ServerState) -> float:
    """N / divisor: turns ω_i into the weight of x += (η/N) Σ ω_i Δ_i, as the open round stands."""
    tally = tally_of(state)
    divisor = algorithm.weight.divisor(tally)
    return tally.population / divisor if divisor else 0.0


def weights(
    algorithm: Algorithm, mask: NDArray[np.bool_], clients: Rows | None = None
) -> NDArray[np.float64]:
    """The weights ω_t^n of x += (η/N) Σ_n ω_t^n Δ_t^n along a participation mask [rounds, N].

    Of `clients`, or of all. Nothing is trained. Rows of the mask are client rounds; the weight of
    an absent client is the one that its update would have had. Memory and amplification are not
    weights: they stay out.

    >>> from turnout.algorithms import fedau
    >>> mask = np.array([[1, 1], [1, 0], [1, 0], [1, 1], [1, 1]], dtype=bool)
    >>> weights(fedau(cutoff=50), mask)[:, 1]
    array([1., 1., 1., 1., 2.])
    """
    table = np.asarray(mask, dtype=bool)
    if table.ndim != 2:
        raise InputError(f"mask has shape {table.shape}; it must be [rounds, clients]")
    asked = np.arange(table.shape[1]) if clients is None else clients
    state = start(algorithm, torch.zeros(0), table.shape[1])
    out = np.empty((len(table), len(asked)))
    for t, present in enumerate(table):
        omega = algorithm.weight.weigh(state.weight, t, asked)
        rows = np.flatnonzero(present)
        state = _note(algorithm, state, rows)
        state.client_round += 1
        state.delivered = len(rows)
        out[t] = omega * scale(algorithm, state)
    return out


def close(algorithm: Algorithm, state: ServerState) -> ServerState:
    """End a client round: move the model by what came, by memory, by amplification."""
    clients = len(state.seen)
    tally = tally_of(state)
    gate, contributed = algorithm.gate, state.contributed
    if gate is None or gate.ready(tally):
        direction = _divide(state.total, algorithm.weight.divisor(tally))
        if algorithm.memory is not None and algorithm.beta:
            remembered = state.memory["mean"] * clients
            direction += algorithm.beta * _divide(remembered, algorithm.memory.divisor(tally))
        if state.guide is not None and algorithm.assistance is not None:
            times, state.assistance = algorithm.assistance.share.of(
                state.assistance, tally, state.round, None
            )
            direction += times * state.guide
        step, state.transform = algorithm.transform.apply(direction, state.x, state.transform)
        state.x = state.x + step
        state.version += 1
        state.total = torch.zeros_like(state.x)
        state.delivered = 0
        if state.trust is not None:
            state.trust = torch.zeros_like(state.trust)
        if contributed is not None:
            contributed[:] = False
    if state.starts is not None and state.arrived is not None:
        state.starts[torch.from_numpy(state.arrived)] = state.x
        state.arrived[:] = False
    if algorithm.memory is not None:
        state.memory = algorithm.memory.settle(state.memory)
    if (state.client_round + 1) % algorithm.local.rule.window == 0:
        # A new dictionary: the old one has been broadcast, and a client may still hold it.
        means, changes = state.means, state.changes
        state.means = {name: mean + changes[name] / clients for name, mean in means.items()}
        for total in changes.values():
            total.zero_()
    return replace(state, round=state.round + 1, client_round=state.client_round + 1)


def _divide(total: Tensor, divisor: float) -> Tensor:
    # Nobody delivered, or the divisor holds the model still: no direction, rather than 0 / 0.
    return total / divisor if divisor else torch.zeros_like(total)


def server_step(
    algorithm: Algorithm, state: ServerState, work: Work, accuracy: float | None = None
) -> ServerState:
    """The server trains on its own data, where in the round its `assistance.when` says.

    `accuracy` is that of the model on data held out. No client has missed anything by a round that
    is the server's.
    """
    assistance = algorithm.assistance
    if assistance is None:
        raise InputError(f"{algorithm.name} has no assistance, so the server does not train")
    number = server_round(algorithm, state)
    broadcast = Broadcast(
        x=state.x,
        round=state.client_round,
        lr=assistance.local.rate(number),
        weights=np.ones(1),
        shares=np.ones(1),
        means={},
    )
    update = _descend(assistance.local.rule, broadcast, work, {}).update[0]
    if assistance.when == "beside":
        return replace(state, guide=update)
    times, known = assistance.share.of(state.assistance, tally_of(state), number, accuracy)
    closed = state.round + (assistance.when == "instead")
    return replace(state, x=state.x + times * update, assistance=known, round=closed)


def server_round(algorithm: Algorithm, state: ServerState) -> int:
    """The round to which the next `server_step` belongs: after a client round it is that one."""
    after = algorithm.assistance is not None and algorithm.assistance.when == "after"
    return state.round - after
