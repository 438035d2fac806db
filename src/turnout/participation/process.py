"""What a participation process is: a pure, replayable answer to "who shows up?"."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from turnout.wording import counted

Rows = NDArray[np.int64]
State = dict[str, Any]  # plain arrays under plain names, so that a checkpoint can hold it


class Attendance(NamedTuple):
    """One round of it. Both are sorted rows of the population; delivered ⊆ cohort."""

    cohort: Rows
    """Clients that were asked and began to compute."""
    delivered: Rows
    """Clients whose update reached the server."""
    began: Rows | None = None
    """Those who begin to compute in this round and deliver in a later one, or in this. Then a round
    is an arrival: the cohort is the one client that has finished. None: all of the cohort."""


@dataclass(frozen=True)
class Participation:
    """A process over `clients` clients: a start state and a pure step.

    `step(state, round)` gives the attendance of that round and the state for the next one. It is
    called with rounds 0, 1, 2, … in order and draws only from (seed, round, client), so the same
    process gives the same mask whoever asks and however often.
    """

    name: str
    clients: int
    init: Callable[[], State]
    step: Callable[[State, int], tuple[Attendance, State]]
    rates: NDArray[np.float64] | None = None
    """Expected long-run share of rounds in which each client delivers; None where unknown."""
    period: int | None = None
    """Rounds after which the same attendance comes again; None where chance has a say."""
    asynchronous: bool = False
    """Is a round an arrival, of an update that may have begun in an earlier one?"""
    among: Callable[[Rows], "Participation"] | None = None
    """The same process over these clients only, where leaving some out changes what the others do
    (m of N). None: clients come and go whatever the others do."""

    def __repr__(self) -> str:
        return f"<{self.name}: {counted(self.clients, 'client')}{self._often()}>"

    def _often(self) -> str:
        """How often they come, where that is known.

        >>> from turnout.participation import bernoulli
        >>> bernoulli([0.1, 0.3])
        <bernoulli: 2 clients, each comes in 10 to 30 % of rounds>
        """
        if self.rates is None:
            return ""
        low, high = 100 * float(self.rates.min()), 100 * float(self.rates.max())
        share = f"{low:.3g}" if low == high else f"{low:.3g} to {high:.3g}"
        return f", each comes in {share} % of rounds"

    def rounds(self, rounds: int) -> Iterator[Attendance]:
        """The first `rounds` rounds, one by one."""
        state = self.init()
        for t in range(rounds):
            attendance, state = self.step(state, t)
            yield attendance

    def mask(self, rounds: int, cohort: bool = False) -> NDArray[np.bool_]:
        """Who delivered (or, with `cohort`, who was asked) as a [rounds, clients] table."""
        table = np.zeros((rounds, self.clients), dtype=bool)
        for t, attendance in enumerate(self.rounds(rounds)):
            table[t, attendance.cohort if cohort else attendance.delivered] = True
        return table
