"""A client round on the wire: who is there, orders out, answers in, until enough or too late."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from flwr.app import ArrayRecord, ConfigRecord, Message, MessageType, RecordDict
from flwr.serverapp import Grid

from turnout.flower import messages
from turnout.flower.clock import Clock
from turnout.flower.federation import Federation
from turnout.flower.happened import DROPPED, Ask, Happened
from turnout.flower.mail import Mail
from turnout.flower.nodes import Greeting, Nodes, greeting
from turnout.flower.rules import Rules
from turnout.flower.secure import SecureAggregation, aggregate
from turnout.participation.process import Attendance

_MARGIN = 2.0
"""Flower's clock ends an order a little later than ours, or the last poll would come too late."""

Letter = tuple[Message, Ask]


@dataclass
class Exchange:
    """The server's end of the line."""

    grid: Grid
    clock: Clock
    rules: Rules
    federation: Federation
    nodes: Nodes = field(default_factory=Nodes)
    silent: set[int] = field(default_factory=set)
    """Rows of those of whom nothing was heard in the last client round."""

    def __post_init__(self) -> None:
        self.mail: Mail[Ask | Greeting] = Mail(self.grid, self.clock)

    def assemble(self) -> None:
        """Before the first round: wait for `start_with` clients, but not for ever."""
        began = self.clock.now()
        until = began + self.rules.startup
        while True:
            self._look_around()
            self._poll(None)
            here = len(self.nodes.names)
            greeted = not any(isinstance(note, Greeting) for note in self.mail.under_way.values())
            if (here >= self.rules.start_with and greeted) or self.clock.now() >= until:
                return
            self.mail.pause(began, until)

    def choose(
        self, happened: Happened, attendance: Attendance | None, opened: float
    ) -> dict[int, int]:
        """Row → node of those to ask, as soon as anybody is there. Late answers come in first."""
        until = opened + self.rules.patience
        while True:
            self._look_around()
            self._poll(happened)
            self.nodes.enrol(self.federation.roster)
            self.federation.make_room()
            here = self._free(happened)
            nobody = False
            if attendance is not None:
                here = {row: here[row] for row in attendance.cohort.tolist() if row in here}
                nobody = len(attendance.cohort) == 0
            if here or nobody or self.clock.now() >= until:
                rows = np.array(list(here), dtype=np.int64)
                drawn = self.federation.draw(rows, self.rules.per_round)
                return {row: here[row] for row in drawn.tolist()}
            self.mail.pause(opened, until)

    def orders(
        self,
        nodes: dict[int, int],
        attendance: Attendance | None,
        config: ConfigRecord,
        opened: float,
    ) -> list[Letter]:
        """The orders to these clients; they have what is left of the round."""
        federation, now = self.federation, self.clock.now()
        life = opened + self.rules.lifetime - now
        means, models = federation.means, federation.arrays_for(list(nodes))
        heeded = None if attendance is None else set(attendance.delivered.tolist())
        out = []
        tickets = federation.tickets(np.array(list(nodes), dtype=np.int64))
        for ticket, arrays in zip(tickets, models, strict=True):
            node = nodes[ticket.row]
            ask = Ask(
                row=ticket.row,
                name=federation.roster.names[ticket.row],
                claim=self.nodes.claims[node],
                node=node,
                round=federation.round,
                ticket=ticket,
                asked_at=self.clock.wall(),
                expires=now + life,
                heeded=heeded is None or ticket.row in heeded,
            )
            content = messages.order(arrays, means, config, ticket)
            group = str(federation.round + 1)
            message = Message(content, node, MessageType.TRAIN, ttl=life + _MARGIN, group_id=group)
            out.append((message, ask))
        return out

    def collect(self, letters: Sequence[Letter], happened: Happened, opened: float) -> None:
        """Send orders and take in answers until enough have come or the round is over."""
        unsent = self.mail.send(letters)
        self.federation.unanswered(
            [note for note in unsent if isinstance(note, Ask)], happened, "could not be reached"
        )
        enough = self.rules.enough(len(letters))
        soonest, until = opened + self.rules.min_round, opened + self.rules.deadline
        while True:
            self._poll(happened)
            now = self.clock.now()
            complete = happened.answered or happened.delivered >= enough
            if now >= until or (complete and now >= soonest):
                break
            self.mail.pause(opened, soonest if complete else until)
        if not complete:
            self._poll(happened, self.rules.grace)
        why = "did not answer before the deadline" if now >= until else "was not waited for"
        self.federation.unanswered(happened.asked.values(), happened, why)
        self.silent = happened.silent

    def collect_sum(
        self,
        settings: SecureAggregation,
        letters: Sequence[Letter],
        happened: Happened,
        opened: float,
    ) -> None:
        """Take in the sum of what those send who stay to the end."""
        deadline = self.rules.deadline
        form = self.federation.form(ask for _, ask in letters)
        total = aggregate(settings, self.grid, self.clock, letters, opened, deadline, form)
        self.federation.take_sum(total, happened, self.clock.wall())
        for _, ask in letters:
            if not ask.heeded:
                happened.note(ask, DROPPED, None)
        why = "is in no sum: " + (
            "it left before the end" if total.of else "too few clients stayed to the end"
        )
        self.federation.unanswered(happened.asked.values(), happened, why)
        self.silent = happened.silent
        left = opened + self.rules.min_round - self.clock.now()
        self.clock.sleep(max(left, 0.0))

    def surveys(self, arrays: ArrayRecord, config: ConfigRecord) -> list[Message]:
        """Requests to evaluate the model, to everybody who is there and owes no answer.

        Who has not answered in this round would not now, either, and cost another deadline.
        """
        content = RecordDict({"arrays": arrays, "config": config})
        ttl = self.rules.deadline
        present = self.nodes.present(self.federation.roster)
        nodes = [node for row, node in present.items() if row not in self.silent]
        return [Message(content, node, MessageType.EVALUATE, ttl=ttl) for node in nodes]

    def survey(self, requests: Sequence[Message]) -> list[Message]:
        """What comes back of them before the deadline."""
        until = self.clock.now() + self.rules.deadline
        letters = [(message, None) for message in requests]
        answers = Mail[None](self.grid, self.clock).exchange(letters, until)
        return [answer for _, answer in answers]

    def drop_stale(self, round: int) -> None:
        """Forget orders whose answers would no longer be taken in the coming `round`."""
        now, late = self.clock.now(), self.rules.late_rounds
        self.mail.answered.clear()
        for number, note in list(self.mail.under_way.items()):
            if isinstance(note, Greeting):
                if now >= note.expires:
                    self.nodes.missed(note)
                    del self.mail.under_way[number]
            elif now >= note.expires or round - note.round > late:
                del self.mail.under_way[number]

    def _look_around(self) -> None:
        new = self.nodes.see(self.grid.get_nodes())
        ttl = self.rules.deadline
        expires = self.clock.now() + ttl
        unsent = self.mail.send([(greeting(node, ttl), Greeting(node, expires)) for node in new])
        for note in unsent:
            if isinstance(note, Greeting):
                self.nodes.missed(note)

    def _poll(self, happened: Happened | None, patience: float = 1.0) -> None:
        for note, answer in self.mail.poll(patience):
            if isinstance(note, Greeting):
                self.nodes.answer(note, answer)
            elif happened is not None:
                self.federation.take(note, answer, happened, self.clock.wall())

    def _free(self, happened: Happened) -> dict[int, int]:
        """Row → node of who is there and owes no answer."""
        self._release_moved()
        busy = {note.row for note in self.mail.under_way.values() if isinstance(note, Ask)}
        busy |= {ask.row for ask in happened.taken}
        present = self.nodes.present(self.federation.roster)
        return {row: node for row, node in present.items() if row not in busy}

    def _release_moved(self) -> None:
        """Forget orders to nodes that are no longer their clients' home.

        A client that has restarted elsewhere will not answer what its old node was asked, and need
        not sit out the rounds for which such an answer could still come late.
        """
        names = self.federation.roster.names
        for number, note in list(self.mail.under_way.items()):
            if isinstance(note, Ask) and self.nodes.home[names[note.row]] != note.node:
                del self.mail.under_way[number]
