"""What an algorithm is: a value made of small parts.

Most of the field is one formula. With Δ_i the update of client i, h_i what memory holds of it and
S the clients whose updates were delivered,

    direction = β·Σ_all h_i / D_h + Σ_{i∈S} ω_i·(Δ_i − β·h_i) / D_a,   then h_i ← Δ_i for i ∈ S

and x moves by what the server transform makes of that direction. The parts are: a weight rule
(ω and its divisor D_a), a memory (h and its divisor D_h) with β, a gate (when collected updates
move the model), a selection (whom to ask), a judge (of single updates), a server transform, local
training, and assistance (training on server data).
Named algorithms are recipes over these parts; see `turnout.algorithms`. `turnout.round` holds the
arithmetic.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Protocol, runtime_checkable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from turnout.card import card
from turnout.parts.local import Local

Rows = NDArray[np.int64]
State = dict[str, Any]  # numpy arrays a population, tensors a parameter vector, plain numbers


class Tally(NamedTuple):
    """What the server has counted when a round closes."""

    population: int
    delivered: int
    """Updates in the round (or in the window that a gate has held open)."""
    seen: int
    """Clients that have delivered at least once, this round included."""
    trust: float = 0.0
    """Σ of what the judge, if there is one, has made each of them count for."""


Divisor = Callable[[Tally], float]
"""What a sum over clients is divided by; 0 means that the sum must not move the model yet."""


def per_delivered(tally: Tally) -> float:
    return tally.delivered


def per_client(tally: Tally) -> float:
    return tally.population


def per_seen(tally: Tally) -> float:
    return tally.seen


def per_trust(tally: Tally) -> float:
    return tally.trust


def once_all_seen(tally: Tally) -> float:
    return tally.population if tally.seen == tally.population else 0


class WeightRule(NamedTuple):
    """How much each delivered update counts: ω_i / divisor.

    `weigh` may use only what `observe` saw in earlier rounds. Rounds are client rounds: a round
    that the server trains by itself is not a round that anybody missed.
    """

    init: Callable[[int], State]
    weigh: Callable[[State, int, Rows], NDArray[np.float64]]
    observe: Callable[[State, int, Rows], State]
    divisor: Divisor = per_client
    alone: bool = True
    """Can a client weigh itself, by its own participation and nothing else?"""


@runtime_checkable
class Table(Protocol):
    """A vector for each client, [N, d], that is too large for a tensor."""

    @property
    def shape(self) -> torch.Size: ...
    @property
    def nbytes(self) -> int: ...
    def __len__(self) -> int: ...
    def __getitem__(self, rows: Tensor, /) -> Tensor: ...
    def __setitem__(self, rows: Tensor, block: Tensor, /) -> None: ...

    def read(self, start: int, stop: int) -> NDArray[Any]:
        """The rows from `start` up to `stop` (or the last), as checkpoints hold them."""
        ...

    def fill(self, start: int, block: NDArray[Any]) -> None:
        """Put these rows in from `start` on, as they come from a checkpoint."""
        ...


Zeros = Callable[[int, Tensor], Tensor | Table]
"""(N, a vector [d]) → a table of zeros."""


def in_memory(clients: int, like: Tensor) -> Tensor:
    """A table of zeros as one tensor."""
    return like.new_zeros(clients, len(like))


class Memory(NamedTuple):
    """Past updates h_i, and the running mean of them over the population.

    The mean and everything that `recall` returns stay those of the round's start until `settle`.
    """

    init: Callable[[int, Tensor], State]
    """State for N clients and models like this one, but for the tables."""
    store: Callable[[State, Rows, Tensor], State]
    """The server's memory is given updates Δ; clients' memory is given their changes Δ − h."""
    settle: Callable[[State], State]
    recall: Callable[[State, Rows], Tensor] | None = None
    """h of these rows, [C, d]; None where the clients hold it and the server does not know."""
    divisor: Divisor = per_client
    tables: tuple[str, ...] = ()
    """Entries of the state with a row a client, [N, d]: tensors or `Table`s, zero at first."""
    sums: tuple[str, ...] | None = None
    """Entries that `store` only adds to and `settle` empties; None: unknown, so that `store` must
    be called with all that was delivered, and not here with some of it and elsewhere with the rest."""


class Gate(NamedTuple):
    """Holds the model until enough updates have come."""

    ready: Callable[[Tally], bool]
    once: bool = True
    """Does each client count once, with the first update that it delivers while the gate is shut?"""


Lateness = Callable[[NDArray[np.int64]], NDArray[np.float64]]
"""How often the model has moved since each client was sent it → what its update counts for beside ω"""


class Selection(NamedTuple):
    """Whom to ask, of those who are there; by what it has seen, and never by true rates."""

    init: Callable[[int], State]
    step: Callable[[State, int, Rows, NDArray[np.float64], np.random.Generator], tuple[Rows, State]]
    """(state, client round, who is there, N·q of everybody, draws) → (who is asked, sorted; state)"""
    weigh: Callable[[State, Rows], NDArray[np.float64]] | None = None
    """What the updates of these count for beside the weight rule's ω."""
    hear: Callable[[State, Rows, NDArray[np.float64]], State] | None = None
    """These have delivered, and report their loss at the model that they were sent."""


Judge = Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]
"""(updates [C, d], the server's own Δ_0 [d]) → (updates as they may count, what for [C])"""


class ServerTransform(NamedTuple):
    """What the server makes of a direction before it moves the model."""

    init: Callable[[Tensor], State]
    apply: Callable[[Tensor, Tensor, State], tuple[Tensor, State]]
    """(direction [d], x [d], state) → (step to add to x, state)"""
    forget: Callable[[State], State] = lambda state: state
    """What is left of its state when what clients keep between rounds is started anew."""
    observe: Callable[[State, Rows], State] = lambda state, rows: state
    """These clients have delivered in the open round."""


class Share(NamedTuple):
    """How much of the server's own update Δ_0 counts; by what it has seen so far."""

    of: Callable[[State, Tally, int, float | None], tuple[float, State]]
    """(state, tally, round, accuracy on data held out) → (how many times Δ_0, state)"""
    init: Callable[[int], State] = lambda clients: {}
    observe: Callable[[State, Rows], State] = lambda state, rows: state
    """These clients have delivered."""
    reads: str | None = None
    """What it was told of clients' data, beside their updates."""


WHOLE = Share(lambda state, tally, round, accuracy: (1.0, state))


@dataclass(frozen=True)
class Assistance:
    """Training on the server's own data, as `local` says, and what becomes of its update Δ_0.

    `when` says in which rounds and from which model: "instead" of clients, whose rounds come with
    probability `q`; "beside" them, from the model that they are sent, so that Δ_0 joins their
    direction; or "after" them, from the model that their round has left. `data` names the server's
    data: its auxiliary set, or, for a centralised ceiling, everything that all clients hold. The
    share `held_out` of it is not trained on, and tells the accuracy that `share` goes by.
    """

    local: Local
    when: Literal["instead", "beside", "after"] = "instead"
    q: float = 1.0
    share: Share = WHOLE
    data: Literal["auxiliary", "everything"] = "auxiliary"
    held_out: float = 0.0

    @property
    def said(self) -> str:
        """When it trains, in words."""
        if self.when != "instead":
            return f"in each round, {self.when} clients"
        return f"in {100 * (1 - self.q):.3g} % of rounds, instead of clients"


@dataclass(frozen=True)
class Algorithm:
    """A participation-aware federated algorithm, the same object in simulator and deployment."""

    name: str
    weight: WeightRule
    transform: ServerTransform
    local: Local = field(default_factory=Local)
    memory: Memory | None = None
    beta: float = 0.0
    gate: Gate | None = None
    assistance: Assistance | None = None
    judge: Judge | None = None
    lateness: Lateness | None = None
    selection: Selection | None = None
    own_start: bool = False
    """Does a client go on from the model that the round left in which it last delivered?"""
    settings: dict[str, Any] = field(default_factory=dict)
    """The arguments of the recipe, for tables and run directories."""

    def __repr__(self) -> str:
        inside = ", ".join(f"{k}={_written(v)}" for k, v in self.settings.items())
        return f"{self.name}({inside})"

    def _repr_html_(self) -> str:
        tables = {key: _written(v) for key, v in self.settings.items() if isinstance(v, np.ndarray)}
        said = {key: tables.get(key, str(value)) for key, value in self.settings.items()}
        said["memory of past updates"] = "none" if self.memory is None else f"β = {self.beta:g}"
        if self.assistance is not None:
            said["the server trains"] = self.assistance.said
        said["sums are enough for the server"] = "yes" if self.sums_only else "no"
        return card(self.name, said)

    @property
    def assisted(self) -> bool:
        """Does the server ever train?"""
        helped = self.assistance
        return helped is not None and (helped.when != "instead" or helped.q < 1)

    @property
    def reweighs(self) -> bool:
        """Does the server decide what each update counts for, when it arrives?"""
        return self.judge is not None or self.lateness is not None

    @property
    def hears(self) -> bool:
        """Do clients report their losses, each its own?"""
        return self.selection is not None and self.selection.hear is not None

    @property
    def sums_only(self) -> bool:
        """Does the server need nothing but sums over clients (so secure aggregation applies)?"""
        blind = self.gate is None and not self.reweighs and not self.hears
        return blind and (self.memory is None or self.memory.recall is None)


def _written(value: Any) -> str:
    """A setting in one line: of a table only how large it is."""
    if isinstance(value, np.ndarray) and value.size > 12:
        return f"<{' × '.join(map(str, value.shape))} numbers>"
    return repr(value)
