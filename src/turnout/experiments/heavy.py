"""A word of warning where single updates begin to count for more than everybody's."""

import logging

from turnout.simulator import Round

log = logging.getLogger("turnout")

TIMES = 10
"""A weight above so many times N is worth a warning."""


class Heavy:
    """Names, once, each client whose weight has grown out of proportion.

    In x += (η/N) Σ ω Δ a weight of N takes one client's update at its full length. Without a cutoff,
    and with clients that hardly ever come, weights grow far beyond that, and one update throws the
    model off.
    """

    def __init__(self, run: str) -> None:
        self.run = run
        self.said: set[int] = set()

    def note(self, happened: Round, clients: int) -> None:
        over = happened.weights > TIMES * clients
        fresh = [n for n in happened.delivered[over].tolist() if n not in self.said]
        if fresh:
            self.said.update(fresh)
            log.warning(
                "%s, round %d: the weight of client %s is %.4g, more than %d times N = %d, so that "
                "one update moves the model further than all clients should; a cutoff bounds weights",
                self.run,
                happened.round,
                ", ".join(map(str, fresh[:10])) + (", …" if len(fresh) > 10 else ""),
                happened.weights.max(),
                TIMES,
                clients,
            )
