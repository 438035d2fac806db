"""Several federations in step, small cohorts of theirs trained as one: seeds and step sizes as an axis.

Each of them stays what it would be alone: who comes, which mini-batches, what the server makes of
it. Shared are the operations of local steps, which changes the last bits of sums at most.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import torch
from torch import nn

from turnout.engine.batched import Batched
from turnout.engine.contract import Block
from turnout.engine.crew import undisturbed
from turnout.engine.joint import Cohort, Joint
from turnout.parts.local import LocalRule
from turnout.products import quick
from turnout.simulator import (
    DivergenceError,
    Federation,
    Round,
    Simulation,
    Turn,
    closed,
    opened,
    recall,
    trained,
)

LIMIT = 1 << 23
"""Products of a local step, of all cohorts in a block: with more, it is the products that take the
time, and one block after the other has better use of the caches."""
MOST = 16
"""Federations at a time: each has a world of its own in memory."""
BYTES = 1 << 29
"""Of samples that they have together: they are copied into one pool."""


def room(simulation: Simulation, rounds: int) -> int:
    """How many federations of the size of this one are to be trained together for so many rounds.

    1 where it does not pay.

    By sizes and not by the clock: who trains with whom decides about last bits.
    """
    engine, algorithm, training = simulation.engine, simulation.algorithm, simulation.training
    helped = algorithm.assistance
    by_server = helped is not None and helped.when == "instead" and helped.q == 0
    if not isinstance(engine, Batched) or engine.compiled or by_server:
        return 1
    if training.augment is not None or simulation.ranks.count > 1:
        return 1
    if any(isinstance(part, nn.Conv2d) for part in training.model.module.modules()):
        return 1
    some = [came.delivered for came in simulation.world.participation.rounds(min(rounds, 3))]
    products = engine.products(algorithm, max(some, key=len))
    pool = training.pool
    size = pool.inputs.nbytes + pool.targets.nbytes
    return max(1, min(MOST, LIMIT // max(1, products), BYTES // max(1, size)))


def grouped(simulations: Sequence[Simulation], rounds: int) -> list[list[int]]:
    """Which of these simulations, of one model, are to train together."""
    kin: list[list[int]] = []
    for place, simulation in enumerate(simulations):
        for some in kin:
            if _alike(simulations[some[0]], simulation):
                some.append(place)
                break
        else:
            kin.append([place])
    groups = []
    for some in kin:
        size = evenly(len(some), min(room(simulations[place], rounds) for place in some))
        groups += [some[start : start + size] for start in range(0, len(some), size)]
    return groups


def _alike(one: Simulation, other: Simulation) -> bool:
    """Do they differ in worlds, seeds and step sizes only, as far as local training is concerned?"""
    mine, others = one.algorithm.local, other.algorithm.local
    # Rules say all their settings in their names, or are told apart.
    named = mine.rule.name == others.rule.name != LocalRule._field_defaults["name"]
    same = mine.rule is others.rule or named
    same = same and replace(others, lr=mine.lr, rule=mine.rule) == mine
    pools = one.training.pool, other.training.pool
    kinds = [
        (
            pool.inputs.dtype,
            pool.inputs.shape[1:],
            pool.targets.dtype,
            pool.targets.shape[1:],
            *(None if values is None else values.tolist() for values in (pool.mean, pool.std)),
        )
        for pool in pools
    ]
    return same and kinds[0] == kinds[1] and one.chosen.name == other.chosen.name


def evenly(count: int, room: int) -> int:
    """The size of groups, all about as large, of no more than `room`.

    >>> evenly(5, 3), evenly(5, 16), evenly(5, 1)
    (3, 5, 1)
    """
    return -(-count // -(-count // room))


class Together:
    """Plays rounds of federations whose models, engines and local rules are the same."""

    def __init__(self, federations: Sequence[Federation]) -> None:
        self._members = {id(federation): k for k, federation in enumerate(federations)}
        trainings = [federation.simulation.training for federation in federations]
        self._joint, self._parameters = Joint(trainings), trainings[0].layout.size

    def __call__(self, federations: Sequence[Federation]) -> list[Round | DivergenceError]:
        """One round of each."""
        found: dict[int, Round | DivergenceError] = {}
        turns: dict[int, Turn] = {}
        for place, federation in enumerate(federations):
            try:
                turns[place] = opened(federation.simulation, federation.progress)
            except DivergenceError as diverged:
                found[place] = diverged
        blocks: dict[int, Block] = {}
        for places in self._blocks(federations, turns):
            cohorts = [self._cohort(federations[place], turns[place]) for place in places]
            with undisturbed(torch.get_num_threads()), quick(self._parameters):
                blocks |= zip(places, self._joint.train(cohorts), strict=True)
        for place, turn in turns.items():
            simulation, progress = federations[place].simulation, federations[place].progress
            alone = trained(simulation, progress, turn)
            try:
                found[place] = closed(
                    simulation, progress, turn, [blocks[place]] if place in blocks else alone
                )
            except DivergenceError as diverged:
                found[place] = diverged
        return [found[place] for place in range(len(federations))]

    def _blocks(self, federations: Sequence[Federation], turns: dict[int, Turn]) -> list[list[int]]:
        """Whose cohorts train together: as many at a time as `LIMIT` lets in."""
        blocks: list[list[int]] = [[]]
        held = 0
        for place, turn in turns.items():
            if turn.broadcast is None or not len(turn.rows):
                continue
            simulation = federations[place].simulation
            assert isinstance(simulation.engine, Batched)  # `room` has seen to it
            products = simulation.engine.products(simulation.algorithm, turn.rows)
            if held + products > LIMIT:
                blocks, held = [*blocks, []], 0
            blocks[-1].append(place)
            held += products
        return [places for places in blocks if len(places) > 1]

    def _cohort(self, federation: Federation, turn: Turn) -> Cohort:
        assert turn.broadcast is not None
        return Cohort(
            self._members[id(federation)],
            federation.simulation.algorithm,
            turn.broadcast,
            turn.rows,
            partial(recall, federation.progress),
        )
