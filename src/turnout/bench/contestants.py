"""Who plays: turnout with each of its engines, its reference, and others' simulators."""

from collections.abc import Callable
from importlib.util import find_spec
from time import perf_counter
from typing import NamedTuple

import torch

from turnout.bench.workloads import Workload
from turnout.engine.threaded import Precision
from turnout.products import quick
from turnout.simulator import advance, begin

Play = Callable[[int], float]
"""Plays so many rounds (or products) and says how many seconds one took."""

ROUNDS = 1000
"""Rounds that a run is told it will have: enough for engine "auto" to try engines."""


class Ready(NamedTuple):
    """A contestant that has set up its data and its model."""

    play: Play
    note: str = ""


class Contestant(NamedTuple):
    name: str
    side: str
    """turnout, pfl, Flower or reference: what ratios are taken between."""
    make: Callable[[Workload], Ready]
    threads: int | None = None
    """Threads that torch has; None: as torch has it."""
    needs: tuple[str, ...] = ()
    """Packages without which it cannot play."""
    only: str = ""
    """Keys of the workloads that it plays; none: all."""
    own_pace: bool = False
    """Is a round bound by waiting rather than work, so that a few are enough?"""

    def missing(self) -> list[str]:
        return [package for package in self.needs if find_spec(package) is None]


def timed(rounds: int, one: Callable[[], object]) -> float:
    """Seconds that each of so many calls took on average."""
    began = perf_counter()
    for _ in range(rounds):
        one()
    return (perf_counter() - began) / rounds


def _ours(engine: str, precision: Precision = "full") -> Callable[[Workload], Ready]:
    def make(workload: Workload) -> Ready:
        simulation = workload.simulation(engine, ROUNDS, precision)
        progress, chosen = begin(simulation), simulation.chosen
        note = f"{chosen.name}: {chosen.why}" if engine == "auto" else ""
        return Ready(lambda rounds: timed(rounds, lambda: advance(simulation, progress)), note)

    return make


def _pfl(workload: Workload) -> Ready:
    from turnout.bench.with_pfl import make

    return Ready(make(workload))


def _flower(workload: Workload) -> Ready:
    from turnout.bench.with_flower import make

    return Ready(make(workload))


def peak(dtype: torch.dtype, ours: bool = False) -> Play:
    """How long a square product takes on all cores: torch's own way, or as our engines take it."""
    a, b, out = (torch.ones(SIZE, SIZE, dtype=dtype) for _ in range(3))

    def play(times: int) -> float:
        with quick(a.numel() if ours else 0):
            return timed(times, lambda: torch.mm(a, b, out=out))

    return play


SIZE = 1024
PEAK_FLOPS = 2 * SIZE**3
PEAK = "the peak of products"
OUR_PEAK = "the peak of our products"

CONTESTANTS = {
    each.name: each
    for each in (
        Contestant("turnout", "turnout", _ours("auto")),
        Contestant("turnout, batched", "", _ours("batched"), only="ac"),
        Contestant("turnout, threaded", "", _ours("threaded")),
        Contestant("turnout, bf16", "", _ours("threaded", "bf16"), only="b"),
        Contestant("turnout, reference, 1 thread", "reference", _ours("reference"), threads=1),
        Contestant("turnout, reference", "reference", _ours("reference")),
        Contestant("pfl, 1 thread", "pfl", _pfl, threads=1, needs=("pfl",)),
        Contestant("pfl", "pfl", _pfl, needs=("pfl",)),
        Contestant("Flower simulation", "Flower", _flower, needs=("flwr", "ray"), own_pace=True),
        Contestant(PEAK, "", lambda _: Ready(peak(torch.float32))),
        Contestant(OUR_PEAK, "", lambda _: Ready(peak(torch.float32, ours=True))),
    )
}
