"""Cohorts of several federations as one block: seeds and step sizes as one more axis.

Each federation draws its own mini-batches, as it would by itself; what is shared is the operations
of each local step. That pays where these are so small that calling them is what takes the time.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import torch

from turnout.algorithm import Algorithm, Rows
from turnout.data.pool import Pool
from turnout.engine.batched import Batched
from turnout.engine.batches import joined
from turnout.engine.contract import Block, Recall, Task, Training
from turnout.round import Broadcast, Part, client_steps


class Cohort(NamedTuple):
    """Whom a federation wants trained in a round."""

    member: int
    """Which of the federations it is."""
    algorithm: Algorithm
    broadcast: Broadcast
    rows: Rows
    recall: Recall


class Joint:
    """Trains cohorts of federations that have the same model and the same local rule."""

    def __init__(self, trainings: Sequence[Training]) -> None:
        self._trainings = trainings
        pools = [training.pool for training in trainings]
        self._shifts = np.cumsum([0, *map(len, pools)]).tolist()
        # The offsets are nobody's: batches are drawn by each federation's own training.
        whole = replace(trainings[0], pool=_one_pool(pools))
        self._engine = Batched(whole, workers=1)

    def train(self, cohorts: Sequence[Cohort]) -> list[Block]:
        """A block for each cohort, with its rows in the order in which they would train alone."""
        rows, batches = [], []
        for cohort in cohorts:
            training, local = self._trainings[cohort.member], cohort.algorithm.local
            places = np.argsort(-training.steps(local, cohort.rows), kind="stable")
            ordered = cohort.rows[places]
            rows.append((places, ordered))
            batches.append(training.clients(local, ordered, cohort.broadcast.round).batches)
        block, found = joined(batches, [self._shifts[cohort.member] for cohort in cohorts])
        whole = self._engine.training
        task = Task(whole, whole.pool, block, 0, np.arange(len(block.steps)))
        parts = [
            Part(
                cohort.algorithm,
                cohort.broadcast.part(order.tolist()),
                cohort.recall(ordered),
                mine,
            )
            for cohort, (order, ordered), mine in zip(cohorts, rows, found, strict=True)
        ]
        trained = client_steps(parts, self._engine.work(task))
        return [Block(ordered, *each) for (_, ordered), each in zip(rows, trained, strict=True)]


def _one_pool(pools: Sequence[Pool]) -> Pool:
    inputs = torch.cat([pool.inputs for pool in pools])
    return replace(
        pools[0], inputs=inputs, targets=torch.cat([pool.targets for pool in pools]), owners=None
    )
