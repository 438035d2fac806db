"""Which engine trains: by the kind of model, or by the clock where a run is long enough."""

import logging
import shutil
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from time import perf_counter
from typing import NamedTuple

import numpy as np
import torch
from torch import nn

from turnout.algorithm import Algorithm, Rows
from turnout.engine.allocator import keep_freed_memory
from turnout.engine.batched import Batched
from turnout.engine.contract import Engine, Training
from turnout.engine.dense import layers_of
from turnout.engine.reference import Reference
from turnout.engine.threaded import Precision, Threaded
from turnout.errors import choose, require
from turnout.parts.local import Local
from turnout.products import quick
from turnout.round import Broadcast, nothing_kept

log = logging.getLogger("turnout")

ENGINES: dict[str, Callable[[Training], Engine]] = {
    "reference": Reference,
    "batched": Batched,
    "threaded": Threaded,
}
COMPILED: dict[str, Callable[[Training], Engine]] = {
    "compiled": partial(Batched, workers=1, compiled=True)
}
"""Where there is a C++ compiler."""

LONG = 20.0
"""Seconds of training from which on it pays to try other engines."""
VERY_LONG = 600.0
"""Seconds of training from which on compiling, most of a minute, may pay, too."""
CLEARLY = 0.8
"""Another engine must take less than this share of the time: a close race would be drawn anew each
time, and with it the last bits of the results."""


STEPS, CLIENTS = 5, 50
"""A trial is no larger than this."""


class Choice(NamedTuple):
    """An engine, its name and why it is this one."""

    engine: Engine
    name: str
    why: str


@dataclass(frozen=True)
class Outlook:
    """What a run is expected to be, as far as engines are concerned."""

    algorithm: Algorithm
    rounds: int
    """Client rounds."""
    rows: Rows
    """Clients of a typical round."""


def pick(
    name: str,
    training: Training,
    outlook: Outlook | None = None,
    precision: Precision = "full",
) -> Choice:
    """The engine of this name; "auto" picks one, by a trial where `outlook` is a long run.

    Trials are pure: which engine trains changes the last bits of floating-point sums at most.
    """
    keep_freed_memory()
    choose("precision", precision, ("full", "bf16"))
    if precision == "bf16":
        require(name in ("auto", "threaded"), "engine", name, "threaded (or auto) for bf16")
        single = training.dtype == torch.float32
        require(single, "dtype", str(training.dtype), "float32 for bf16")
        return Choice(Threaded(training, precision=precision), "threaded", "it alone has bf16")
    if name != "auto":
        engines = {**ENGINES, **COMPILED}
        return Choice(engines[choose("engine", name, engines)](training), name, "asked for")
    first, why = _suited(training)
    choice = Choice(ENGINES[first](training), first, why)
    if outlook is not None and outlook.rounds >= 20 and len(outlook.rows):
        choice = _fastest(choice, training, outlook)
    log.info("engine %s: %s", choice.name, choice.why)
    return choice


def choose_engine(name: str, training: Training) -> Engine:
    """The engine of this name; "auto" goes by the kind of model."""
    return pick(name, training).engine


def _suited(training: Training) -> tuple[str, str]:
    """By the model alone."""
    if layers_of(training) is not None:
        return "batched", "the model's gradients are known by hand"
    if any(isinstance(part, nn.Conv2d) for part in training.model.module.modules()):
        return "threaded", "convolutions of many clients at once are slow on processors"
    trouble = _trouble_with_vmap(training)
    return ("batched", "vmap takes the model") if trouble is None else ("threaded", trouble)


def _trouble_with_vmap(training: Training) -> str | None:
    rows = np.arange(min(2, len(training.offsets) - 1))
    task = training.clients(Local(steps=1, batch_size=2), rows, 0)
    x = training.layout.flatten(training.model.module).repeat(len(rows), 1)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # of operations that vmap does one by one
            Batched(training, 1).work(task).gradient(x, 0)
    except Exception as error:  # there is no end to what a model may do that vmap cannot
        return f"vmap does not take the model ({str(error).strip().splitlines()[0][:80]})"
    return None


def _fastest(first: Choice, training: Training, outlook: Outlook) -> Choice:
    trials = {first.name: _try(first.engine, training, outlook)}
    if trials[first.name].total < LONG:
        return first._replace(why=f"{first.why}, and the run is short")
    engines = {first.name: first.engine}
    names = [name for name in ("batched", "threaded") if name != first.name]
    if layers_of(training) is None and trials[first.name].total > VERY_LONG and shutil.which("g++"):
        names.append("compiled")
    for name in names:
        engine = {**ENGINES, **COMPILED}[name](training)
        try:
            trials[name] = _try(engine, training, outlook)
            engines[name] = engine
        except Exception as error:  # as above: then it is not the one
            log.info("engine %s does not take the model: %s", name, error)
    best = min(trials, key=lambda name: trials[name].total)
    if trials[best].total > CLEARLY * trials[first.name].total:
        best = first.name
    took = ", ".join(f"{name} {trial.a_round * 1e3:.3g} ms" for name, trial in trials.items())
    return Choice(engines[best], best, f"measured, a round's training: {took}")


class _Trial(NamedTuple):
    before: float
    """Seconds until it is at full speed."""
    a_round: float
    total: float


def _try(engine: Engine, training: Training, outlook: Outlook) -> _Trial:
    """How long a few steps of a typical cohort take, as seconds of a round and of the run."""
    rows, local = outlook.rows[:CLIENTS], outlook.algorithm.local
    steps = training.steps(local, outlook.rows)
    few = min(STEPS, int(steps.max()))
    algorithm = replace(outlook.algorithm, local=replace(local, steps=few, epochs=None))
    x = training.layout.flatten(training.model.module)
    kept, ones = nothing_kept(algorithm, len(rows), x), np.ones(len(rows))
    means = {name: torch.zeros_like(x) for name in local.rule.shared}
    broadcast = Broadcast(x, 0, local.rate(0), ones, ones, means)

    def seconds() -> float:
        began = perf_counter()
        with quick(training.layout.size):
            for _ in engine.train(
                algorithm,
                broadcast,
                rows,
                lambda some: {name: held[: len(some)] for name, held in kept.items()},
            ):
                pass
        return perf_counter() - began

    before, after = seconds(), min(seconds(), seconds())
    a_round = after * steps.sum() / (few * len(rows))
    return _Trial(before, a_round, before + outlook.rounds * a_round)
