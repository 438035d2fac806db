"""The server's own data: what it trains on, and what it holds out to see how good the model is."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from turnout import round as protocol
from turnout.algorithm import Algorithm
from turnout.data.pool import Pool
from turnout.draws import generator
from turnout.engine.contract import Task, Training
from turnout.errors import InputError, require
from turnout.evaluate import score
from turnout.round import Work
from turnout.state import ServerState


@dataclass(frozen=True)
class Assistant:
    """Both drivers let it do the server's own steps."""

    training: Training
    pool: Pool
    """What the server trains on."""
    held_out: Pool | None
    work: Callable[[Task], Work]
    """An engine's."""

    @staticmethod
    def of(
        algorithm: Algorithm, training: Training, data: Pool, work: Callable[[Task], Work]
    ) -> "Assistant":
        """With some of `data` held out, drawn by the seed, where the algorithm goes by accuracy."""
        assert algorithm.assistance is not None
        share = algorithm.assistance.held_out
        if share == 0:
            return Assistant(training, data, None, work)
        if not training.model.classification:
            raise InputError(
                f"{algorithm.name} goes by the accuracy on samples of the server, and this model does "
                "not tell classes apart; it must be one that does"
            )
        right = "at least 2, of which one is held out"
        require(len(data) >= 2, "number of samples at the server", len(data), right)
        order = generator(training.seed, "held out at the server").permutation(len(data))
        count = min(max(1, round(share * len(data))), len(data) - 1)
        held, rest = np.sort(order[:count]), np.sort(order[count:])
        return Assistant(training, data.take(rest), data.take(held), work)

    def step(self, algorithm: Algorithm, state: ServerState) -> ServerState:
        """The server's training, in the round that is open or has just been closed."""
        assert algorithm.assistance is not None
        number = protocol.server_round(algorithm, state)
        task = self.training.server(algorithm.assistance.local, self.pool, number)
        accuracy = None
        if self.held_out is not None:
            model, layout = self.training.model, self.training.layout
            hit = score(model, layout, state.x, self.held_out, self.training.dtype).hit
            assert hit is not None  # `of` has seen to it
            accuracy = float(hit.mean())
        return protocol.server_step(algorithm, state, self.work(task), accuracy)
