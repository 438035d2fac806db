"""Several federations trained together are what each of them is alone: every algorithm, in float64.

The trace has empty rounds, lost updates, a client that never comes and one that comes once, and
each member of a group has a trace, data, a seed and step sizes of its own.
"""

from dataclasses import replace

import numpy as np
import pytest
import torch
from tests.conformance.cases import CASES, DELIVERED, ROUNDS, classification, logistic

from turnout.algorithm import Algorithm
from turnout.evaluate import Metrics
from turnout.simulator import Cadence, Federation, Round, Simulation, begin, play
from turnout.together import Together

SEEDS = (0, 1, 5)


def members(
    name: str, lrs: tuple[float, ...] = (1.0, 1.0, 1.0), **more: object
) -> list[Federation]:
    """Federations of one method in three worlds."""
    found = []
    for seed, lr in zip(SEEDS, lrs, strict=True):
        method: Algorithm = CASES[name]
        method = replace(method, local=replace(method.local, lr=lr * method.local.rate(0)))
        delivered = np.roll(DELIVERED, seed, axis=0)
        sizes = (3, 5, 8, 4, 6, 2) if seed else (2, 9, 4, 4, 1, 7)
        world = classification(delivered, sizes=sizes, seed=seed)
        simulation = Simulation.of(
            method, world, logistic(), seed, "batched", torch.float64, **more
        )
        cadence = Cadence(3, 5, ROUNDS)
        found.append(Federation(simulation, begin(simulation), cadence, simulation.evaluator()))
    return found


def history(federations: list[Federation], together: bool) -> list[list[Metrics]]:
    """The metrics of each, played together or one after the other."""
    found: list[list[Metrics]] = [[] for _ in federations]

    def after(federation: Federation, happened: Round, metrics: Metrics | None) -> None:
        if metrics is not None:
            found[[id(f) for f in federations].index(id(federation))].append(metrics)

    if together:
        train = Together(federations)
        while any(federation.going for federation in federations):
            play(federations, after=after, train=train)
    else:
        for federation in federations:
            play([federation], after=after)
    return found


def agree(federations: list[Federation], alone: list[Federation]) -> None:
    for one, other in zip(federations, alone, strict=True):
        np.testing.assert_allclose(one.x, other.x, rtol=1e-9, atol=1e-11)
        assert (one.progress.delivered == other.progress.delivered).all()
        np.testing.assert_allclose(one.progress.influence, other.progress.influence, rtol=1e-12)
        for name, held in one.progress.kept.items():
            np.testing.assert_allclose(held, other.progress.kept[name], rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("lrs", [(1.0, 1.0, 1.0), (1.0, 0.3, 2.0)], ids=["seeds", "step sizes"])
@pytest.mark.parametrize("name", CASES)
def test_together_as_alone(name: str, lrs: tuple[float, ...]) -> None:
    federations, alone = members(name, lrs), members(name, lrs)
    found, expected = history(federations, together=True), history(alone, together=False)
    agree(federations, alone)
    for one, other in zip(found, expected, strict=True):
        assert [m["round"] for m in one] == [m["round"] for m in other]
        np.testing.assert_allclose(
            [m["test_loss"] for m in one if "test_loss" in m],
            [m["test_loss"] for m in other if "test_loss" in m],
            rtol=1e-9,
        )
