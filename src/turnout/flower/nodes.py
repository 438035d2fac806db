"""Which node is whose: a node that is new here is asked once for its client's name.

Flower's node ids change when a SuperNode without keys restarts, and a SuperNode that was killed
stays online for a minute. So the newest node of a name is its client's. A name under which a node
has been registered with its key is proven, and goes before the one that its client says.
"""

import logging
from collections.abc import Iterable
from dataclasses import dataclass, field

from flwr.app import Message, RecordDict
from flwr.proto.node_pb2 import NodeInfo

from turnout.flower import messages
from turnout.flower.roster import Roster
from turnout.flower.words import as_name, one_line

LOG = logging.getLogger("flwr.turnout")

_PASSING = (3, 4, 5, 8)
"""Flower's codes for a message or a node that is no more, or for a process that was killed (out of
memory, say); with others, asking again is no use."""


@dataclass(frozen=True)
class Greeting:
    """Written on the message that asks a node for a name."""

    node: int
    expires: float


@dataclass
class Nodes:
    """Who is there, as far as they have said who they are."""

    online: dict[int, str] = field(default_factory=dict)
    """Node → the name under which it was registered, empty where it was not."""
    asked: set[int] = field(default_factory=set)
    """Greeted, and not to be greeted again."""
    claims: dict[int, str] = field(default_factory=dict)
    """Node → what its client calls itself."""
    home: dict[str, int] = field(default_factory=dict)
    """Name → node."""
    strangers: set[str] = field(default_factory=set)
    """Names for which the roster has no room."""

    def see(self, online: Iterable[NodeInfo]) -> list[int]:
        """Note who is online; returns the nodes that have to be greeted."""
        self.online = {info.node_id: info.name for info in online}
        self.asked &= self.online.keys()  # One that left and came back may be another client's.
        new = sorted(self.online.keys() - self.asked)
        self.asked |= set(new)
        return new

    def answer(self, greeting: Greeting, reply: Message) -> None:
        """Note the name that a node has given."""
        node = greeting.node
        if reply.has_error() and reply.error.code in _PASSING:
            self.missed(greeting)
            return
        try:
            if reply.has_error():
                reason = one_line(reply.error.reason or "")
                raise ValueError(f"code {reply.error.code}: {reason}")
            claim = messages.read_name_tag(reply)
            name = as_name(self.online.get(node) or claim)
        except Exception as error:  # whatever a stranger's records can do to a parser
            sentence = "node %d does not give a name (%s); it is not asked to train"
            LOG.warning(sentence, node, one_line(error))
            return
        self.claims[node] = claim
        before = self.home.get(name)
        if before is not None and before != node and before in self.online:
            LOG.info("client %r is now at node %d; it was at %d", name, node, before)
        self.home[name] = node

    def missed(self, greeting: Greeting) -> None:
        """A greeting was never answered."""
        self.asked.discard(greeting.node)

    def enrol(self, roster: Roster) -> None:
        """Give rows to names that are new: in their own order, not in that of their answers."""
        new = self.home.keys() - roster.rows.keys() - self.strangers
        for name in sorted(new, key=_natural):
            if roster.admit(name) is None:
                self.strangers.add(name)
                sentence = "client %r is turned away: the population is %d clients, all known"
                LOG.warning(sentence, name, roster.size)

    @property
    def names(self) -> set[str]:
        """Whose nodes are online."""
        return {name for name, node in self.home.items() if node in self.online}

    def present(self, roster: Roster) -> dict[int, int]:
        """Row → node of the clients that are online, in the order of rows."""
        here = {roster.rows[n]: self.home[n] for n in self.names if n in roster.rows}
        return dict(sorted(here.items()))


def _natural(name: str) -> tuple[bool, int, str]:
    """So that "10" comes after "9"."""
    number = name.isdecimal()
    return not number, int(name) if number else 0, name


def greeting(node: int, ttl: float) -> Message:
    return Message(RecordDict(), node, messages.GREETING, ttl=ttl)
