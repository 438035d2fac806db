"""The world and the cases of the conformance suite with few clients, and a mask with all the trouble."""

import numpy as np
from tests.conformance.cases import CASES, LOCAL, classification

from turnout.algorithm import Algorithm
from turnout.algorithms import feddu, known
from turnout.flower import SecureAggregation
from turnout.world import World

FINE = SecureAggregation(clip=8.0, levels=2**28)

DELIVERED = np.array([[1, 0, 1, 1], [1, 1, 0, 0], [0, 0, 0, 0], [1, 1, 1, 1]], dtype=bool)
ASKED = np.array([[1, 1, 1, 1], [1, 1, 0, 0], [0, 0, 0, 0], [1, 1, 1, 1]], dtype=bool)


def world(clients: int) -> World:
    sizes = (3, 5, 8, 4)[:clients]
    return classification(DELIVERED[:, :clients], ASKED[:, :clients], sizes)


def case(name: str, clients: int) -> Algorithm:
    """A case of the suite; where the suite's has a table with a row a client, one of so many rows."""
    if name == "known":
        return known((0.9, 0.6, 0.5, 0.1)[:clients], local=LOCAL)
    if name == "feddu":
        labels = [[3, 0, 0], [1, 4, 0], [0, 0, 8], [2, 1, 1]][:clients]
        return feddu(labels=labels, server_labels=[1, 1, 3], held_out=0.6, inner=CASES["fedavg"])
    return CASES[name]
