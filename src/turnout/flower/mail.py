"""Messages under way: sent, not yet answered. Pushing and pulling, and never a wait without end.

Flower's pull claims every answer whose upload has begun, and then waits for the rest of it: if a
client dies in the middle, for three minutes. Hence pulls run on threads of their own, for which
nobody waits longer than they want to, and which may overlap.
"""

import logging
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from queue import Empty, SimpleQueue
from typing import Generic, TypeVar

from flwr.app import Message
from flwr.serverapp import Grid

from turnout.flower.clock import Clock
from turnout.flower.words import one_line

LOG = logging.getLogger("flwr.turnout")
T = TypeVar("T")

_SHORTEST, _LONGEST = 0.05, 1.0
_PULLS = 8
"""How many pulls may be open at once."""
_CLAIMED = 3
"""Flower's code for a message that has expired, or whose answer another pull has claimed."""
_FAILURES = 3
"""After so many pulls in a row that failed, the network is at fault and not an answer."""


@dataclass
class Mail(Generic[T]):
    """What has been sent to whom: `under_way[message id]` is whatever the sender wrote on it."""

    grid: Grid
    clock: Clock
    under_way: dict[str, T] = field(default_factory=dict)
    answered: dict[str, T] = field(default_factory=dict)
    """Answers that have come, so that a second one is known for what it is."""
    _open: dict[int, list[str]] = field(default_factory=dict)
    """What each open pull asks for; any of it may be claimed."""
    _pulled: SimpleQueue[tuple[int, list[Message] | BaseException]] = field(
        default_factory=SimpleQueue
    )
    _begun: int = 0
    _failed: int = 0

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

    def poll(self, patience: float = _LONGEST) -> Iterator[tuple[T, Message]]:
        """The answers that are there now. Answers to what nobody has sent are passed over.

        For those whose upload has begun it waits no longer than `patience`, in seconds of a real
        clock; they come with a later poll.
        """
        if not self.under_way:
            return
        if len(self._open) < _PULLS:
            self._begin()
        for answer in self._arrived(patience):
            # The sender of an error is the SuperLink, so this alone tells whose it is.
            number = answer.metadata.reply_to_message_id
            if self._hollow(number, answer):
                continue
            if number in self.under_way:
                self.answered[number] = self.under_way.pop(number)
            if number in self.answered:
                yield self.answered[number], answer

    def exchange(
        self, letters: Sequence[tuple[Message, T]], until: float
    ) -> list[tuple[T, Message]]:
        """Send, and return what is answered before `until`."""
        began = self.clock.now()
        self.send(letters)
        answers: list[tuple[T, Message]] = []
        while True:
            answers += self.poll()
            if not self.under_way or self.clock.now() >= until:
                return answers
            self.pause(began, until)

    def pause(self, since: float, until: float) -> None:
        """Sleep a while, but not beyond `until`; the longer the wait so far, the longer the while."""
        now = self.clock.now()
        # A twentieth of the wait so far costs at most 5 % of a round, and few polls of a long one.
        nap = min(max((now - since) / 20, _SHORTEST), _LONGEST)
        self.clock.sleep(max(min(nap, until - now), 0.0))

    def _begin(self) -> None:
        self._begun += 1
        this, ids = self._begun, list(self.under_way)
        self._open[this] = ids

        def pull() -> None:
            try:
                self._pulled.put((this, list(self.grid.pull_messages(ids))))
            except BaseException as error:  # a thread has nobody to raise it to
                self._pulled.put((this, error))

        threading.Thread(target=pull, daemon=True).start()

    def _hollow(self, number: str, answer: Message) -> bool:
        """Does it only say that another pull has what it asked for?"""
        if not answer.has_error() or answer.error.code != _CLAIMED:
            return False
        return number in self.answered or any(number in ids for ids in self._open.values())

    def _arrived(self, patience: float) -> Iterator[Message]:
        """What open pulls bring."""
        until = time.monotonic() + patience
        while self._open:
            try:
                which, pulled = self._pulled.get(timeout=max(until - time.monotonic(), 0.0))
            except Empty:
                return
            del self._open[which]
            if isinstance(pulled, BaseException):
                self._failed += 1
                if self._failed == _FAILURES or not isinstance(pulled, Exception):
                    raise pulled
                kind, why = type(pulled).__name__, one_line(pulled)
                LOG.warning("answers that Flower cannot hand over (%s: %s)", kind, why)
            else:
                self._failed = 0
                yield from pulled
