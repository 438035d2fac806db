"""SAFARI: a small data set at the server stands in for clients that never come.

"Understanding Server-Assisted Federated Learning in the Presence of Incomplete Client
Participation", ICML 2024.
"""

from turnout.algorithm import Algorithm, Assistance
from turnout.algorithms.fedavg import fedavg
from turnout.algorithms.recipe import recipe
from turnout.errors import require
from turnout.parts.assistance import assisted, server_sgd


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
    return assisted(base, assistance(q, assistance_lr, server_steps, server_batch))


@recipe
def server_only(
    server_steps: int | None = 1, server_batch: int | None = 64, assistance_lr: float = 0.1
) -> Algorithm:
    """Centralised SGD on the server's auxiliary data alone (SAFARI with q = 0)."""
    return safari(0.0, server_steps, server_batch, assistance_lr)


def assistance(
    q: float, lr: float, steps: int | None = 1, batch_size: int | None = 64
) -> Assistance:
    """Server rounds in place of client rounds, from checked settings."""
    require(0 <= q <= 1, "q", q, "a probability in [0, 1]")
    return Assistance(server_sgd(lr, steps, batch_size), q=q)
