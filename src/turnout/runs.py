"""Runs: `simulate` and `simulate_many`, and what they return."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from turnout.algorithm import Algorithm
from turnout.card import card
from turnout.data.augment import Augmentation
from turnout.engine.threaded import Precision
from turnout.errors import InputError, require
from turnout.evaluate import Metrics
from turnout.models import Model
from turnout.ranks import Ranks, found
from turnout.simulator import (
    Cadence,
    DivergenceError,
    Federation,
    Round,
    Simulation,
    begin,
    each,
    play,
)
from turnout.tables import Tables
from turnout.together import Together, grouped
from turnout.wording import counted
from turnout.world import World


@dataclass(repr=False)
class Run:
    """A finished (or diverged) simulation."""

    algorithm: Algorithm
    module: nn.Module
    """The trained model."""
    x: Tensor
    history: list[Metrics] = field(default_factory=list)
    """One entry for each evaluated round."""
    clients: Sequence[dict[str, Any]] = ()
    """One entry a client, as of the last round."""
    diverged: DivergenceError | None = None
    seconds: float = 0.0
    engine: str = ""
    """Which engine trained, and why."""

    def __repr__(self) -> str:
        if not self.history:
            return f"<run of {self.algorithm!r}: {self._length()}>"
        metric = "test_accuracy" if "test_accuracy" in self.history[-1] else "test_loss"
        return f"<run of {self.algorithm!r}: {self._length()}, {metric} {self.final(metric):.4g}>"

    def _repr_html_(self) -> str:
        names = {
            "test_accuracy": "test accuracy",
            "test_loss": "test loss",
            "train_loss": "loss of the clients",
            "spread_accuracy": "spread of accuracy over clients",
            "never_seen_accuracy": "accuracy for clients that never came",
        }
        said = {"rounds": self._length(), "trained in": f"{self.seconds:.1f} s by {self.engine}"}
        for key, name in names.items():
            if self.curve(key)[1]:
                said[name] = f"{self.final(key):.4g}"
        return card(repr(self.algorithm), said)

    def _length(self) -> str:
        done = counted(int(self.history[-1]["round"]) if self.history else 0, "round")
        return done if self.diverged is None else f"diverged in round {self.diverged.round}"

    def curve(self, metric: str = "test_accuracy") -> tuple[list[int], list[float]]:
        """Rounds and values of one metric, where it was measured."""
        points = [(m["round"], m[metric]) for m in self.history if metric in m]
        return [r for r, _ in points], [v for _, v in points]

    def final(self, metric: str = "test_accuracy") -> float:
        return self.curve(metric)[1][-1]

    def best(self, metric: str = "test_accuracy") -> float:
        return max(self.curve(metric)[1])

    def tail(self, rounds: int = 200, metric: str = "test_accuracy") -> float:
        """The mean over evaluations of the last `rounds` rounds."""
        at, values = self.curve(metric)
        return float(np.mean([v for r, v in zip(at, values, strict=True) if r > at[-1] - rounds]))


def simulate(
    algorithm: Algorithm,
    world: World,
    model: Model,
    rounds: int,
    *,
    seed: int = 0,
    engine: str = "auto",
    evaluate_every: int = 10,
    clients_every: int | None = None,
    client_samples: int | None = None,
    dtype: torch.dtype = torch.float32,
    augment: Augmentation | None = None,
    precision: Precision = "full",
    start: Tensor | None = None,
    tables: Tables = Tables(),
    ranks: Ranks | None = None,
    watch: Callable[[Round, Metrics | None], None] | None = None,
) -> Run:
    """Run `algorithm` in `world` for `rounds` rounds; the same seed gives the same run.

    Every `evaluate_every` rounds, and after the last, the model is evaluated on test data; every
    `clients_every` rounds (unless given, as often) on the clients' own data too, on the first
    `client_samples` of each client where that is given. `tables` says from which size on a table with
    a vector for each client is a file, and where. Under `torchrun` every rank trains a part of each
    cohort and all have the same run, unless `ranks` says otherwise. `watch` is called after each
    round, with the metrics where there are some. A diverging run ends early and keeps what it had.
    """
    (run,) = simulate_many(
        algorithm,
        world,
        model,
        rounds,
        seeds=seed,
        engine=engine,
        evaluate_every=evaluate_every,
        clients_every=clients_every,
        client_samples=client_samples,
        dtype=dtype,
        augment=augment,
        precision=precision,
        start=start,
        tables=tables,
        ranks=ranks,
        watch=None if watch is None else lambda place, happened, found: watch(happened, found),
    )
    return run


def simulate_many(
    algorithms: Algorithm | Sequence[Algorithm],
    worlds: World | Sequence[World],
    model: Model,
    rounds: int,
    *,
    seeds: int | Sequence[int] = 0,
    engine: str = "auto",
    evaluate_every: int = 10,
    clients_every: int | None = None,
    client_samples: int | None = None,
    dtype: torch.dtype = torch.float32,
    augment: Augmentation | None = None,
    precision: Precision = "full",
    start: Tensor | None = None,
    tables: Tables = Tables(),
    ranks: Ranks | None = None,
    watch: Callable[[int, Round, Metrics | None], None] | None = None,
) -> list[Run]:
    """As `simulate`, several runs: one for each algorithm, world and seed; a single one serves all.

    Where that is faster, those that differ in worlds, seeds and step sizes only train together; each
    is what it would be alone, up to rounding. `watch` is told which run it is, too.

    >>> from turnout import algorithms, data, participation
    >>> train, test = data.digits()
    >>> partition = data.iid(len(train), clients=10, seed=0)
    >>> world = World.build(train, partition, test, participation.uniform(10, per_round=4))
    >>> model = Model.of("logistic", (1, 8, 8), 10)
    >>> runs = simulate_many(algorithms.fedau(), world, model, 20, seeds=[0, 1, 2])
    >>> [run.engine.rpartition("; ")[2] for run in runs]
    ['3 of them together', '3 of them together', '3 of them together']
    """
    require(rounds >= 1, "rounds", rounds, "at least 1")
    cadence = Cadence(evaluate_every, clients_every or evaluate_every, rounds)
    chosen = _spread(algorithms, worlds, seeds)
    ours = found() if ranks is None else ranks

    def build(setup: tuple[Algorithm, World, int], rounds: int | None) -> Simulation:
        algorithm, world, seed = setup
        return Simulation.of(
            algorithm, world, model, seed, engine, dtype, augment, rounds, precision, tables, ours
        )

    def played(group: Sequence[int], simulations: Sequence[Simulation]) -> list[Run]:
        federations = [
            Federation(one, begin(one, start), cadence, one.evaluator(client_samples))
            for one in simulations
        ]
        places = {id(one): place for one, place in zip(federations, group, strict=True)}
        runs = {place: _begun(one) for one, place in zip(federations, group, strict=True)}
        began = perf_counter()

        def after(federation: Federation, happened: Round, metrics: Metrics | None) -> None:
            place = places[id(federation)]
            if metrics is not None:
                runs[place].history.append(metrics)
            if watch is not None:
                watch(place, happened, metrics)

        train = Together(federations) if len(group) > 1 else each
        while any(federation.going for federation in federations):
            play(federations, after=after, train=train)
        for federation, run in zip(federations, runs.values(), strict=True):
            run.x, run.diverged = federation.x, federation.diverged
            run.clients = federation.client_table()
            federation.simulation.training.layout.load(run.x, run.module)
            if len(group) > 1:
                run.engine += f"; {len(group)} of them together"
        for run in runs.values():
            run.seconds = (perf_counter() - began) / len(group)
        return list(runs.values())

    if len(chosen) == 1:
        return played([0], [build(chosen[0], rounds)])
    simulations = [build(setup, None) for setup in chosen]
    runs: dict[int, Run] = {}
    for group in grouped(simulations, rounds):
        # Who is alone may choose its engine by the clock, as `simulate` does.
        some = [simulations[place] for place in group]
        if len(group) == 1:
            some = [build(chosen[group[0]], rounds)]
        runs |= zip(group, played(group, some), strict=True)
    return [runs[place] for place in range(len(chosen))]


def _spread(
    algorithms: Algorithm | Sequence[Algorithm],
    worlds: World | Sequence[World],
    seeds: int | Sequence[int],
) -> list[tuple[Algorithm, World, int]]:
    """One of each for every run."""
    some_algorithms = [algorithms] if isinstance(algorithms, Algorithm) else list(algorithms)
    some_worlds = [worlds] if isinstance(worlds, World) else list(worlds)
    some_seeds = [seeds] if isinstance(seeds, int) else list(seeds)
    counts = {
        "algorithms": len(some_algorithms),
        "worlds": len(some_worlds),
        "seeds": len(some_seeds),
    }
    runs = max(counts.values())
    for name, count in counts.items():
        if count not in (1, runs):
            raise InputError(
                f"there are {count} {name}; it must be one for all, or one for each of {runs} runs"
            )
    return [
        (
            some_algorithms[run % len(some_algorithms)],
            some_worlds[run % len(some_worlds)],
            some_seeds[run % len(some_seeds)],
        )
        for run in range(runs)
    ]


def _begun(federation: Federation) -> Run:
    simulation = federation.simulation
    run = Run(simulation.algorithm, simulation.training.model.module, federation.x)
    run.engine = f"{simulation.chosen.name}: {simulation.chosen.why}"
    return run
