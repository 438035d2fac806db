"""How far an experiment is: what has been heard of its cells, and what follows from that."""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import monotonic
from typing import NamedTuple

from turnout.evaluate import Metrics
from turnout.experiments.cells import Place
from turnout.simulator import Round

WINDOW = 30.0
"""Seconds over which the rate is measured."""


@dataclass
class Heard:
    """The newest of one cell."""

    round: int
    """Rounds done."""
    took_part: int | None
    """How many delivered in the last round; None if the server trained by itself."""
    accuracy: float | None = None
    loss: float | None = None


class Row(NamedTuple):
    """One method, over its seeds."""

    label: str
    seeds: int
    over: int
    """Seeds that are done."""
    at_work: bool
    newest: Heard | None
    """Of the seed that was heard of last."""
    score: str
    """Mean over the seeds so far."""


class Standing:
    """What is known of all cells, from what is heard after each round.

    Groups of cells begin in their order, and at most `jobs` of them are at work, those heard of last:
    the others are over, also those that diverged early, or were done before this run was resumed.
    """

    def __init__(
        self,
        cells: Sequence[tuple[str, int]],
        rounds: int,
        jobs: int = 1,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self.cells, self.rounds, self.jobs, self.clock = list(cells), rounds, jobs, clock
        self.began = clock()
        self.plan([[cell] for cell in self.cells])
        self.heard: dict[int, Heard] = {}
        """The cell heard of last stands last."""
        self.newest: int | None = None
        self._beats: deque[tuple[float, int]] = deque()
        """From the first round on: what comes before it, imports and data, says nothing of later."""
        self._played = 0

    def plan(self, groups: Sequence[Sequence[tuple[str, int]]]) -> None:
        """Which cells train together, in the order in which groups begin."""
        self.cells = [cell for group in groups for cell in group]
        self._place = {cell: number for number, cell in enumerate(self.cells)}
        self._group = [number for number, group in enumerate(groups) for _ in group]

    def hear(self, place: Place, happened: Round, metrics: Metrics | None) -> None:
        number = self._place[place.label, place.seed]
        before = self.heard.pop(number, None) or Heard(0, None)
        now = Heard(
            happened.round + 1,
            len(happened.delivered) if happened.by == "clients" else None,
            before.accuracy,
            before.loss,
        )
        if metrics is not None:
            now.accuracy = metrics.get("test_accuracy", now.accuracy)
            now.loss = metrics.get("test_loss", now.loss)
        self.heard[number] = now
        self.newest = number
        self._beat()

    def _beat(self) -> None:
        self._played += 1
        now = self.clock()
        if not self._beats or now - self._beats[-1][0] >= 0.25:
            self._beats.append((now, self._played))
        while len(self._beats) > 2 and now - self._beats[1][0] > WINDOW:
            self._beats.popleft()

    @property
    def working(self) -> list[int]:
        """Cells that are being played."""
        late = list(dict.fromkeys(self._group[number] for number in reversed(self.heard)))
        at_work = dict.fromkeys(late[: self.jobs], 0)
        for number, heard in self.heard.items():
            if self._group[number] in at_work:
                round = max(at_work[self._group[number]], heard.round)
                at_work[self._group[number]] = round
        return [
            number
            for number, heard in self.heard.items()
            if heard.round < self.rounds
            # A group goes in step: who has fallen behind has diverged.
            and heard.round >= at_work.get(self._group[number], self.rounds) - 1
        ]

    @property
    def over(self) -> int:
        """Cells that are done."""
        return max(self.heard, default=-1) + 1 - len(self.working)

    @property
    def done(self) -> int:
        """Rounds of all cells that are behind us."""
        return self.over * self.rounds + sum(self.heard[each].round for each in self.working)

    @property
    def total(self) -> int:
        return len(self.cells) * self.rounds

    @property
    def rate(self) -> float | None:
        """Rounds a second, of late."""
        if not self._beats:
            return None
        (then, before), now = self._beats[0], self.clock()
        return (self._played - before) / (now - then) if now > then else None

    @property
    def left(self) -> float | None:
        """Seconds that are left, at this rate."""
        rate = self.rate
        return (self.total - self.done) / rate if rate else None

    def rows(self) -> list[Row]:
        """A row a method, in their order."""
        working, last = set(self.working), max(self.heard, default=-1)
        return [
            self._row(label, working, last) for label in dict.fromkeys(c[0] for c in self.cells)
        ]

    def _row(self, label: str, working: set[int], last: int) -> Row:
        own = [number for number, (name, _) in enumerate(self.cells) if name == label]
        heard = [self.heard[number] for number in own if number in self.heard]
        over = sum(number <= last and number not in working for number in own)
        return Row(
            label,
            len(own),
            over,
            any(number in working for number in own),
            heard[-1] if heard else None,
            score(heard),
        )


def score(heard: Sequence[Heard]) -> str:
    """Mean accuracy, or loss where there is no accuracy.

    >>> score([Heard(10, 5, accuracy=0.81), Heard(10, 5, accuracy=0.82)]), score([Heard(1, 0)])
    ('81.5 %', '')
    """
    accuracies = [each.accuracy for each in heard if each.accuracy is not None]
    if accuracies:
        return f"{100 * sum(accuracies) / len(accuracies):.1f} %"
    losses = [each.loss for each in heard if each.loss is not None]
    return f"loss {sum(losses) / len(losses):.3g}" if losses else ""


def took_part(heard: Heard) -> str:
    """Who trained in the last round.

    >>> took_part(Heard(3, 5)), took_part(Heard(4, None))
    ('5 took part', 'server round')
    """
    return "server round" if heard.took_part is None else f"{heard.took_part} took part"


def pace(rate: float) -> str:
    """Rounds a second, or seconds a round where that is easier to grasp.

    >>> pace(1234.5), pace(2.34), pace(0.1)
    ('1,234 rounds/s', '2.3 rounds/s', '10 s a round')
    """
    if rate < 0.5:
        return f"{1 / rate:.0f} s a round"
    return f"{rate:,.0f} rounds/s" if rate >= 10 else f"{rate:.1f} rounds/s"
