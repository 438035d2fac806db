"""Contestants of one workload against each other: in turn, several times, the best of each counts."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from turnout.bench.contestants import CONTESTANTS, OUR_PEAK, PEAK, PEAK_FLOPS, Contestant
from turnout.bench.worker import TroubleError, Worker
from turnout.bench.workloads import Workload

Say = Callable[[str], None]


class Plan(NamedTuple):
    """How much is measured."""

    turns: int
    """How often each contestant has its turn."""
    seconds: float
    """How long a turn is, about."""


FULL = Plan(turns=7, seconds=1.0)
QUICK = Plan(turns=3, seconds=0.3)


@dataclass
class Timing:
    """What was seen of a contestant."""

    contestant: Contestant
    turns: list[float] = field(default_factory=list)
    """Seconds a round, one for each turn."""
    memory: int = 0
    note: str = ""
    trouble: str = ""

    @property
    def best(self) -> float:
        return min(self.turns)


@dataclass
class Measured:
    """A workload and everybody's timings."""

    workload: Workload
    flops: int
    """Of a round."""
    peak: float
    """Operations a second of torch's best product seen beside the rounds; 0 where none was timed."""
    timings: list[Timing]
    our_peak: float = 0.0
    """The same of products as our engines take them, see `turnout.products`."""

    def best_of(self, side: str) -> Timing | None:
        """The fastest of one side: others are measured at their own best setting."""
        found = [t for t in self.timings if t.contestant.side == side and t.turns]
        return min(found, key=lambda t: t.best) if found else None


def measure(workload: Workload, names: Sequence[str], plan: Plan, say: Say) -> Measured:
    """Start everybody, let each have its turns, and see how much memory it took."""
    timings, workers = [], dict[str, Worker]()
    for name in names:
        contestant = CONTESTANTS[name]
        if contestant.only and workload.key not in contestant.only:
            continue
        timing = Timing(contestant)
        timings.append(timing)
        if missing := contestant.missing():
            timing.trouble = f"not installed: {', '.join(missing)}"
            continue
        say(f"({workload.key}) {name}: getting ready")
        try:
            worker = Worker(workload.key, name)
            timing.note = worker.note
            workers[name] = worker
            worker.play(1)
        except TroubleError as trouble:
            timing.trouble = str(trouble)
    try:
        _take_turns(workload, [t for t in timings if not t.trouble], workers, plan, say)
    finally:
        for timing in timings:
            if timing.contestant.name in workers:
                timing.memory = workers[timing.contestant.name].memory()
                workers[timing.contestant.name].end()
    peaks = {t.contestant.name: PEAK_FLOPS / t.best for t in timings if t.turns}
    rest = [t for t in timings if t.contestant.name not in (PEAK, OUR_PEAK)]
    torchs, ours = (peaks.get(name, 0.0) for name in (PEAK, OUR_PEAK))
    return Measured(workload, workload.flops(), torchs, rest, ours)


def _take_turns(
    workload: Workload, timings: list[Timing], workers: dict[str, Worker], plan: Plan, say: Say
) -> None:
    rounds: dict[str, int] = {}
    for turn in range(plan.turns + 1):  # the first one finds out how many rounds a turn has
        say(f"({workload.key}) turn {turn} of {plan.turns}")
        for timing in timings:
            contestant = timing.contestant
            if timing.trouble or (contestant.own_pace and turn > 3):
                continue
            try:
                took = workers[contestant.name].play(rounds.get(contestant.name, 1))
            except TroubleError as trouble:
                timing.trouble = str(trouble)
                continue
            rounds[contestant.name] = max(1, min(1000, round(plan.seconds / max(took, 1e-6))))
            if turn:
                timing.turns.append(took)
