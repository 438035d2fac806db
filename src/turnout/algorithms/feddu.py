"""FedDU: after each client round the server trains on, by how much the model still has to learn.

And by how far from everybody's classes those of the round were.

Zhang, Liu, Jia, Zhou, Dai, Dou, "FedDUAP: Federated Learning with Dynamic Update and Adaptive Pruning
Using Shared Data on the Server", IJCAI 2022 (its server update, without pruning and momentum).

The paper takes τ_eff steps of size η along the mean of the τ gradients of an epoch on the server's
data, which is (τ_eff/τ)·Δ_0 with Δ_0 the update of that epoch, and has

    τ_eff = (1 − acc) · n_0·D(P′) / (n_0·D(P′) + n′·D(P_0)) · C · decay^t · τ,

where P′ are the classes of the n′ samples of those who came, P_0 those of the server's n_0, and D is
how far from the classes of all clients they are (Jensen–Shannon). There, acc is measured on the samples
that the server trains on, which it soon knows by heart; here some are held out for it.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from turnout.algorithm import Algorithm, Assistance, Rows, Share, State, Tally
from turnout.algorithms.fedavg import fedavg
from turnout.algorithms.recipe import recipe
from turnout.errors import InputError, require
from turnout.parts.assistance import assisted, server_sgd

Counts = NDArray[np.float64]


@recipe
def feddu(
    labels: ArrayLike,
    server_labels: ArrayLike,
    strength: float = 1.0,
    decay: float = 0.999,
    held_out: float = 0.2,
    server_steps: int | None = None,
    server_batch: int | None = 64,
    assistance_lr: float = 0.1,
    inner: Algorithm | None = None,
) -> Algorithm:
    """FedDU: a client round of `inner`, then x += (τ_eff/τ)·Δ_0 with Δ_0 the server's own update.

    `labels` says how many samples of each class every client has, [N, classes], and `server_labels`
    how many the server has. `strength` is C. The server trains for `server_steps` (None: an epoch)
    on all of its samples but the share `held_out`, whose accuracy tells how much is left to learn.
    """
    require(strength > 0, "strength", strength, "positive")
    require(0 < decay <= 1, "decay", decay, "in (0, 1]")
    require(0 < held_out < 1, "held_out", held_out, "a share in (0, 1)")
    clients, server = _counts(labels, server_labels)
    share = effective_steps(clients, server * (1 - held_out), strength, decay)
    local = server_sgd(assistance_lr, server_steps, server_batch)
    helped = Assistance(local, "after", share=share, held_out=held_out)
    return assisted(fedavg() if inner is None else inner, helped)


def effective_steps(clients: Counts, server: Counts, strength: float, decay: float) -> Share:
    """τ_eff/τ, by the classes of those who came and by the accuracy before."""
    everybody = clients.sum(0)
    apart = divergence(server, everybody)

    def init(count: int) -> State:
        right = f"one for each of {count} clients"
        require(count == len(clients), "number of rows of labels", len(clients), right)
        return {"came": np.zeros(len(everybody))}

    def observe(state: State, rows: Rows) -> State:
        state["came"] += clients[rows].sum(0)
        return state

    def of(state: State, tally: Tally, round: int, accuracy: float | None) -> tuple[float, State]:
        assert accuracy is not None  # it asks for samples held out
        ours = server.sum() * divergence(state["came"], everybody)
        theirs = state["came"].sum() * apart
        # Nobody came: all that there is are the server's samples. Where neither is apart from
        # everybody, and only the numbers of samples tell them apart, it is these that count.
        if ours + theirs == 0:
            ours, theirs = server.sum(), state["came"].sum()
        times = strength * (1 - accuracy) * decay**round * ours / (ours + theirs)
        return float(times), {"came": np.zeros_like(state["came"])}

    return Share(of, init, observe, reads="how many samples of each class every client has")


def divergence(one: Counts, other: Counts) -> float:
    """Jensen–Shannon, in nats, between two distributions given as counts; 0 where one has none.

    >>> round(divergence(np.array([1.0, 0.0]), np.array([0.0, 5.0])), 4)  # the most there is: log 2
    0.6931
    """
    if not one.sum() or not other.sum():
        return 0.0
    p, q = one / one.sum(), other / other.sum()
    middle = (p + q) / 2
    return (_relative(p, middle) + _relative(q, middle)) / 2


def _relative(p: Counts, m: Counts) -> float:
    some = p > 0
    return float(np.sum(p[some] * np.log(p[some] / m[some])))


def _counts(labels: ArrayLike, server_labels: ArrayLike) -> tuple[Counts, Counts]:
    clients, server = _table("labels", labels), _table("server_labels", server_labels)
    require(clients.ndim == 2 and clients.size > 0, "shape of labels", clients.shape, _ROWS)
    right = f"({clients.shape[1]},), a count for each class"
    require(server.shape == clients.shape[1:], "shape of server_labels", server.shape, right)
    for client in np.flatnonzero(~(clients.sum(1) > 0))[:1].tolist():
        require(False, f"labels of client {client}", clients[client].tolist(), _SOME)
    require(server.sum() > 0, "server_labels", server.tolist(), _SOME)
    return clients, server


_ROWS = "(clients, classes), a row of counts for each client"
_SOME = "counts from 0, not all of them 0"


def _table(field: str, counts: ArrayLike) -> Counts:
    try:
        table = np.array(counts, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{field} is no table of numbers; it must be one of {_SOME}") from None
    for wrong in table[~((table >= 0) & (table < 2**53))][:1].tolist():
        require(False, f"a count in {field}", wrong, "a number of samples, 0 or more")
    return table
