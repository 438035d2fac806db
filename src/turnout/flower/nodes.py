"""Which node is whose: a node that is new here is asked once for its client's name.

Flower's node ids change when a SuperNode without keys restarts, and a SuperNode that was killed
stays online for a minute. So the newest node of a name is its client's.
"""

import logging
from collections.abc import Iterable
from dataclasses import dataclass, field

from flwr.app import Message, RecordDict

from turnout.flower import messages
from turnout.flower.roster import Roster

LOG = logging.getLogger("flwr.turnout")


@dataclass(frozen=True)
class Greeting:
    """Written on the message that asks a node for a name."""

    node: int
    expires: float


@dataclass
class Nodes:
    """Who is there, as far as they have said who they are."""

    online: set[int] = field(default_factory=set)
    asked: set[int] = field(default_factory=set)
    """Greeted, and not to be greeted again."""
    home: dict[str, int] = field(default_factory=dict)
    """Name → node."""

    def see(self, online: Iterable[int]) -> list[int]:
        """Note who is online; returns the nodes that have to be greeted."""
        self.online = set(online)
        self.asked &= self.online  # One that left and came back may be another client's.
        new = sorted(self.online - self.asked)
        self.asked |= set(new)
        return new

    def answer(self, greeting: Greeting, reply: Message, roster: Roster) -> None:
        """Note the name that a node has given."""
        node = greeting.node
        try:
            if reply.has_error():
                raise ValueError(f"code {reply.error.code}: {_first_line(reply.error.reason)}")
            name = messages.read_name_tag(reply)
        except (ValueError, KeyError) as error:
            self.asked.discard(node)  # It may do better next time.
            LOG.warning("node %d does not give a name (%s); it is not asked to train", node, error)
            return
        if roster.admit(name) is None:
            LOG.warning(
                "client %r (node %d) is turned away: the population is %d clients, all known",
                name,
                node,
                roster.size,
            )
            return
        before = self.home.get(name)
        if before is not None and before != node and before in self.online:
            LOG.info("client %r is now at node %d; it was at %d", name, node, before)
        self.home[name] = node

    def missed(self, greeting: Greeting) -> None:
        """A greeting was never answered."""
        self.asked.discard(greeting.node)

    def present(self, roster: Roster) -> dict[int, int]:
        """Row → node of the clients that are online, in the order of rows."""
        here = {roster.rows[name]: node for name, node in self.home.items() if node in self.online}
        return dict(sorted(here.items()))


def greeting(node: int, ttl: float) -> Message:
    return Message(RecordDict(), node, messages.GREETING, ttl=ttl)


def _first_line(reason: str | None) -> str:
    lines = (reason or "no reason given").strip().splitlines()
    return lines[-1][:200] if lines else ""
