"""The server's half of a client round, without the network: tickets out, answers in."""

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from flwr.app import ArrayRecord, Message

from turnout import draws
from turnout import round as protocol
from turnout.algorithm import Algorithm, Rows
from turnout.flower import messages
from turnout.flower.happened import DROPPED, Ask, Happened
from turnout.flower.messages import Ticket
from turnout.flower.packing import Packing, record
from turnout.flower.privacy import Privacy
from turnout.flower.progress import Progress, forget, grow
from turnout.flower.roster import Roster
from turnout.flower.secure import Sum
from turnout.flower.secure_answers import Form
from turnout.flower.validate import Expected, FailedError, LostError, RefusedError, examine
from turnout.participation.process import Attendance, Participation

LOG = logging.getLogger("flwr.turnout")


class DivergedError(ArithmeticError):
    """The model is no longer finite, though every update was."""


@dataclass
class Federation:
    """What the server knows and by which algorithm it goes on."""

    algorithm: Algorithm
    seed: int
    roster: Roster
    packing: Packing
    participation: Participation | None
    """An injected mask: who is asked, and whose update arrives. None: whoever is there."""
    norm_bound: float | None
    privacy: Privacy | None
    progress: Progress

    @property
    def round(self) -> int:
        return self.progress.server.round

    @property
    def arrays(self) -> ArrayRecord:
        """The model as Flower's arrays."""
        return self.packing.record(self.progress.server.x)

    def arrays_for(self, rows: Sequence[int]) -> list[ArrayRecord]:
        """The models that these clients are sent: one and the same, or each one's own."""
        starts = self.progress.server.starts
        if starts is None:
            return [self.arrays] * len(rows)
        return [self.packing.record(starts[row]) for row in rows]

    @property
    def means(self) -> ArrayRecord | None:
        """What clients are told of vectors that clients keep."""
        means = self.progress.server.means
        return record(means) if means else None

    def by_clients(self) -> bool:
        """Is the coming round one of clients, or does the server train by itself?"""
        return protocol.asks_clients(self.algorithm, self.seed, self.round)

    def attendance(self) -> Attendance | None:
        """Whom an injected mask lets take part; to be asked once a round, of either kind."""
        if self.participation is None:
            return None
        attendance, self.progress.presence = self.participation.step(
            self.progress.presence, self.round
        )
        return attendance

    def make_room(self) -> None:
        """Let N follow the roster."""
        self.progress = grow(self.algorithm, self.progress, self.roster.size)

    def draw(self, rows: Rows, most: int | None) -> Rows:
        """At most so many of these clients, as (seed, round) has it, or whom the algorithm selects."""
        if self.algorithm.selection is not None:
            progress = self.progress
            rows, progress.server = protocol.select(
                self.algorithm, progress.server, np.sort(rows), self.seed
            )
            return rows
        if most is None or len(rows) <= most:
            return rows
        generator = draws.generator(self.seed, "cohort", self.round)
        return np.sort(generator.choice(rows, most, replace=False))

    def tickets(self, rows: Rows) -> list[Ticket]:
        """What each of these clients is told."""
        server = self.progress.server
        broadcast = protocol.announce(self.algorithm, server, rows)
        protocol.sent(server, rows)
        return [
            Ticket(
                seed=self.seed,
                row=int(row),
                round=broadcast.round,
                lr=float(broadcast.lr),
                weight=float(weight),
                share=float(share),
                accepted=int(self.progress.accepted[row]),
                generation=self.progress.generation,
                last=int(self.progress.last[row]),
            )
            for row, weight, share in zip(rows, broadcast.weights, broadcast.shares, strict=True)
        ]

    def take(self, ask: Ask, answer: Message, happened: Happened, at: float) -> None:
        """Take in an answer, or say why not. Nothing that is refused leaves a trace in the model."""
        late = ask.round != happened.round
        try:
            accepted = examine(answer, ask.claim, ask.ticket, self._expected)
            if ask.ticket.generation != self.progress.generation:
                raise RefusedError("from before what clients keep was started anew")
            if ask.row in happened.entries:
                raise RefusedError("a second answer in one round")
        except RefusedError as refusal:
            if isinstance(refusal, LostError) and ask.ticket.generation == self.progress.generation:
                happened.lost = True
            self._refuse(ask, refusal, happened, at)
            return
        if not ask.heeded:
            happened.note(ask, DROPPED, at)
            return
        upload = accepted.upload if self.privacy is None else self.privacy.bound(accepted.upload)
        self._absorb([ask], upload)
        happened.taken.append(ask)
        if self.privacy is None:  # what clients report is not covered by any noise
            happened.reported.append(accepted.metrics)
        happened.note(ask, "late" if late else "delivered", at, delivered=True)

    def take_sum(self, total: Sum, happened: Happened, at: float) -> None:
        """Take in the sum of many uploads, of which nobody has seen any."""
        for ask, refusal in total.refused:
            happened.lost |= isinstance(refusal, LostError)
            self._refuse(ask, refusal, happened, at)
        if not total.of:
            return
        expected, taken = self._expected, [ask for ask, _ in total.of]
        update, *changes = (vector.to(expected.x) for vector in total.vectors)
        named = zip(sorted(expected.changes), changes, strict=True)
        weights = np.array([ask.ticket.weight for ask in taken])
        upload = protocol.Upload(update[None], weights, {n: change[None] for n, change in named})
        self._absorb(taken, upload)
        happened.cut += sum(words.cut for _, words in total.of)
        for ask in taken:
            happened.taken.append(ask)
            happened.note(ask, "delivered", at, delivered=True)

    def form(self, asked: Iterable[Ask]) -> Form:
        """What uploads look like that nobody may look at."""
        expected = self._expected
        nodes = frozenset(ask.node for ask in asked)
        return Form(nodes, 1 + len(expected.changes), len(expected.x))

    def _absorb(self, asks: Sequence[Ask], upload: protocol.Upload) -> None:
        progress, rows = self.progress, np.array([ask.row for ask in asks])
        progress.server = protocol.absorb(self.algorithm, progress.server, rows, upload)
        progress.accepted[rows] = progress.last[rows] = [ask.ticket.round for ask in asks]
        progress.delivered[rows] += 1

    def _refuse(self, ask: Ask, refusal: RefusedError, happened: Happened, at: float) -> None:
        verb = "did not deliver" if isinstance(refusal, FailedError) else "is refused"
        LOG.warning("round %d: client %r %s: %s", happened.round + 1, ask.name, verb, refusal)
        if not isinstance(refusal, FailedError):
            happened.refused.append(f"{ask.name}: {refusal}")
        if ask.round == happened.round:
            happened.note(ask, str(refusal), at)

    def unanswered(self, asks: Iterable[Ask], happened: Happened, why: str) -> None:
        """Note those of this round's asks of whom nothing was heard."""
        for ask in asks:
            if ask.row not in happened.entries:
                LOG.warning("round %d: client %r %s", happened.round + 1, ask.name, why)
                happened.note(ask, why, None)

    def end(self, happened: Happened) -> None:
        """Close a client round."""
        server = self.progress.server
        if self.privacy is not None and happened.taken:
            server.total = self.privacy.blur(server.total, self.round)
        self.progress.server = protocol.close(self.algorithm, server)
        if happened.lost:
            LOG.warning("what clients keep between rounds is started anew, for all of them")
            self.progress = forget(self.algorithm, self.progress)

    def require_finite(self) -> None:
        if not bool(torch.isfinite(self.progress.server.x).all()):
            raise DivergedError(
                f"{self.algorithm!r} diverged in round {self.round}: the model is no longer finite"
            )

    @property
    def _expected(self) -> Expected:
        names = messages.change_names(self.algorithm)
        return Expected(self.progress.server.x, names, self.norm_bound, self.algorithm.hears)
