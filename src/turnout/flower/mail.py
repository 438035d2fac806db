"""Messages under way: sent, not yet answered. Pushing and pulling, and never a wait without end."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Generic, TypeVar

from flwr.app import Message
from flwr.serverapp import Grid

from turnout.flower.clock import Clock

T = TypeVar("T")

_SHORTEST, _LONGEST = 0.05, 1.0


@dataclass
class Mail(Generic[T]):
    """What has been sent to whom: `under_way[message id]` is whatever the sender wrote on it."""

    grid: Grid
    clock: Clock
    under_way: dict[str, T] = field(default_factory=dict)
    answered: dict[str, T] = field(default_factory=dict)
    """Answers that have come, so that a second one is known for what it is."""

    def send(self, letters: Sequence[tuple[Message, T]]) -> list[T]:
        """Push messages; returns what was written on those that could not be sent."""
        if not letters:
            return []
        ids = self.grid.push_messages([message for message, _ in letters])
        # Flower answers None for a message that it did not take, and nothing at all if the whole
        # push was too large.
        returned = []
        for (_, note), number in zip_longest(letters, ids):
            if number:
                self.under_way[number] = note
            else:
                returned.append(note)
        return returned

    def poll(self) -> Iterator[tuple[T, Message]]:
        """The answers that are there now. Answers to what nobody has sent are passed over."""
        if not self.under_way:
            return
        # The sender of an error is the SuperLink, so only the message answered tells whose it is.
        for answer in self.grid.pull_messages(list(self.under_way)):
            number = answer.metadata.reply_to_message_id
            if number in self.under_way:
                self.answered[number] = self.under_way.pop(number)
            if number in self.answered:
                yield self.answered[number], answer

    def exchange(self, letters: Sequence[tuple[Message, T]], until: float) -> list[Message]:
        """Send, and return what is answered before `until`."""
        began = self.clock.now()
        self.send(letters)
        answers: list[Message] = []
        while True:
            answers += [answer for _, answer in self.poll()]
            if not self.under_way or self.clock.now() >= until:
                return answers
            self.pause(began, until)

    def pause(self, since: float, until: float) -> None:
        """Sleep a while, but not beyond `until`; the longer the wait so far, the longer the while."""
        now = self.clock.now()
        # A twentieth of the wait so far costs at most 5 % of a round, and few polls of a long one.
        nap = min(max((now - since) / 20, _SHORTEST), _LONGEST)
        self.clock.sleep(max(min(nap, until - now), 0.0))
