"""SAFARI: a small data set at the server stands in for clients that never come.

"Understanding Server-Assisted Federated Learning in the Presence of Incomplete Client
Participation", ICML 2024.
"""

from dataclasses import replace

from turnout.algorithm import Algorithm, Assistance
from turnout.algorithms.fedavg import fedavg
from turnout.algorithms.recipe import recipe
from turnout.errors import require


@recipe
def safari(
    q: float = 0.8,
    server_steps: int | None = 1,
    server_batch: int | None = 64,
    assistance_lr: float = 0.1,
    inner: Algorithm | None = None,
) -> Algorithm:
    """SAFARI (Algorithm 1): a client round with probability `q`, otherwise SGD on server data.

    A server round takes `server_steps` mini-batches of `server_batch` samples (None: an epoch),
    with step size `assistance_lr` (η_s). Client rounds are those of `inner` (FedAvg unless given).
    """
    base = fedavg() if inner is None else inner
    return replace(base, assistance=assistance(q, assistance_lr, server_steps, server_batch))


@recipe
def server_only(
    server_steps: int | None = 1, server_batch: int | None = 64, assistance_lr: float = 0.1
) -> Algorithm:
    """Centralised SGD on the server's auxiliary data alone (SAFARI with q = 0)."""
    return safari(0.0, server_steps, server_batch, assistance_lr)


def assistance(
    q: float, lr: float, steps: int | None = 1, batch_size: int | None = 64
) -> Assistance:
    """Checked settings of `Assistance`."""
    require(0 <= q <= 1, "q", q, "a probability in [0, 1]")
    require(lr > 0, "assistance_lr", lr, "positive")
    require(steps is None or steps >= 1, "server_steps", steps, "at least 1, or none for an epoch")
    sized = batch_size is None or batch_size >= 1
    require(sized, "server_batch", batch_size, "at least 1, or none for all")
    return Assistance(q, lr, steps, batch_size)
