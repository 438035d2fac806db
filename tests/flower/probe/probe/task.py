"""The world of the conformance suite with few clients, and a mask with all the trouble."""

import numpy as np
from tests.conformance.cases import classification

from turnout.flower import SecureAggregation
from turnout.world import World

FINE = SecureAggregation(clip=8.0, levels=2**28)

DELIVERED = np.array([[1, 0, 1, 1], [1, 1, 0, 0], [0, 0, 0, 0], [1, 1, 1, 1]], dtype=bool)
ASKED = np.array([[1, 1, 1, 1], [1, 1, 0, 0], [0, 0, 0, 0], [1, 1, 1, 1]], dtype=bool)


def world(clients: int) -> World:
    sizes = (3, 5, 8, 4)[:clients]
    return classification(DELIVERED[:, :clients], ASKED[:, :clients], sizes)
