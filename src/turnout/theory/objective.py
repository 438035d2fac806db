"""What averaging really minimises: h(x) = Σ p̃_n F_n(x), with implicit weights p̃_n.

FedAU, Theorem 1: with constant weights ω_n and independent participation at rates p_n, averaging
converges to the minimum of h(x) = (1/P) Σ ω_n p_n F_n(x), P = Σ ω_n p_n, and not to that of f.
The other functions here say what the p̃_n are when the server divides by those who came, when FedAU
cuts its intervals at K, and in a given mask.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from turnout.errors import require
from turnout.participation.inputs import chances
from turnout.theory.bound import counts, positive

if TYPE_CHECKING:
    from turnout.algorithm import Algorithm

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Objective:
    """h beside the intended f: which weight each client's F_n has in them.

    >>> plain = theorem_1([0.5, 0.1])
    >>> plain.shares.round(4).tolist(), round(plain.total_variation, 4)
    ([0.8333, 0.1667], 0.3333)
    """

    shares: Floats
    """p̃_n, the weights of h; they sum to 1."""
    intended: Floats
    """q_n, the weights of f; they sum to 1."""

    @property
    def total_variation(self) -> float:
        """½ Σ |p̃_n − q_n|: the share of the objective that is in the wrong place."""
        return float(0.5 * np.abs(self.shares - self.intended).sum())

    @property
    def missing(self) -> float:
        """The share of f held by clients that h does not know at all."""
        return float(self.intended[self.shares == 0].sum())

    @property
    def ratio(self) -> Floats:
        """p̃_n / q_n: above 1 is overweighted, 0 never heard (1 where nothing was intended)."""
        wanted = self.intended > 0
        return np.divide(self.shares, self.intended, out=np.ones(len(self.shares)), where=wanted)

    def value(self, losses: ArrayLike) -> float:
        """h(x), from every client's F_n(x)."""
        return float(self.shares @ _a_client(self, "losses", losses))

    def error(self, gradients: ArrayLike) -> float:
        """‖∇h(x) − ∇f(x)‖, from every client's ∇F_n(x) [N, d]: what no step size can mend."""
        table = _a_client(self, "gradients", gradients)
        return float(np.linalg.norm((self.shares - self.intended) @ table))

    def __str__(self) -> str:
        order = np.argsort(self.ratio, kind="stable")
        low, high = int(order[0]), int(order[-1])
        return "\n".join(
            [
                f"h(x) = Σ p̃_n F_n(x), {len(self.shares)} clients",
                f"  in the wrong place (total variation)  {100 * self.total_variation:.3g} %",
                f"  never contributed                     {100 * self.missing:.3g} %",
                f"  most underweighted: client {low}, {self.ratio[low]:.3g} of what was intended",
                f"  most overweighted:  client {high}, {self.ratio[high]:.3g} of what was intended",
            ]
        )


def _a_client(objective: Objective, field: str, values: ArrayLike) -> Floats:
    table = np.asarray(values, dtype=np.float64)
    clients = len(objective.shares)
    fits = table.ndim >= 1 and len(table) == clients
    require(fits, f"shape of {field}", table.shape, f"one row for each of {clients} clients")
    return table


def objective(shares: ArrayLike, intended: ArrayLike | None = None) -> Objective:
    """The objective with these implicit weights (scaled to sum to 1); None intends equal ones."""
    implicit = _normalised("shares", shares)
    wanted = np.ones(len(implicit)) if intended is None else intended
    found = _normalised("intended", wanted)
    fits = len(found) == len(implicit)
    require(fits, "length of intended", len(found), f"{len(implicit)}, as many as the clients")
    return Objective(implicit, found)


def _normalised(field: str, values: ArrayLike) -> Floats:
    weights = np.atleast_1d(np.asarray(values, dtype=np.float64))
    good = weights.ndim == 1 and bool((weights >= 0).all()) and 0 < weights.sum() < np.inf
    require(good, field, values, "finite numbers of at least 0, not all of them 0")
    normal: Floats = weights / weights.sum()
    return normal


def theorem_1(
    p: ArrayLike, weights: ArrayLike | None = None, intended: ArrayLike | None = None
) -> Objective:
    """FedAU, Theorem 1: with constant weights ω_n, p̃_n = ω_n p_n / Σ ω_m p_m.

    Without `weights` (ω_n = 1: average all) clients count in proportion to how often they come;
    ω_n = 1/p_n recovers f.

    >>> theorem_1([0.5, 0.1], weights=[2.0, 10.0]).total_variation
    0.0
    """
    rates = chances("p", np.atleast_1d(np.asarray(p, dtype=np.float64)))
    omega = np.ones(len(rates)) if weights is None else np.asarray(weights, dtype=np.float64)
    fits = omega.shape == rates.shape and bool(np.isfinite(omega).all() and (omega >= 0).all())
    require(fits, "weights", weights, f"{len(rates)} finite numbers of at least 0, one a client")
    require(bool((omega * rates).sum() > 0), "p", p, "above 0 for a client whose weight is")
    return objective(omega * rates, intended)


def average_participating(p: ArrayLike, intended: ArrayLike | None = None) -> Objective:
    """The same for FedAvg as mostly run, dividing by those who came: p̃_n ∝ E[1{n∈S}/|S|].

    Not quite ∝ p_n: who comes alone counts in full. With X the others who come,
    E[1{n∈S}/|S|] = p_n·E[1/(1+X)] = p_n ∫₀¹ Π_{m≠n} (1 − p_m + p_m s) ds.

    >>> average_participating([1.0, 0.5]).shares.tolist()  # (½·½ + ½·1, ½·½)
    [0.75, 0.25]
    """
    rates = chances("p", np.atleast_1d(np.asarray(p, dtype=np.float64)))
    require(bool(rates.any()), "p", p, "above 0 for some client")
    # Gauss-Legendre is exact for a polynomial of degree N − 1; with many clients the integrand is
    # close to exp(−(1 − s) Σ p), for which √(Σ p) nodes suffice.
    nodes = int(min((len(rates) + 1) // 2, 40 + 6 * np.sqrt(rates.sum())))
    points, heights = np.polynomial.legendre.leggauss(max(nodes, 1))
    shares = np.zeros(len(rates))
    for s, height in zip((points + 1) / 2, heights / 2, strict=True):
        factors = 1 - rates * (1 - s)
        shares += height * np.exp(np.log(factors).sum()) / factors
    return objective(shares * rates, intended)


def fedau_cut(p: ArrayLike, cutoff: int, intended: ArrayLike | None = None) -> Objective:
    """What FedAU minimises in the long run with cutoff K: p̃_n ∝ 1 − (1 − p_n)^K.

    ω_n tends to the mean of an interval cut at K, which is (1 − (1−p)^K)/p (B.6.2).

    >>> fedau_cut([0.5, 0.1], cutoff=50).shares.round(4).tolist()
    [0.5013, 0.4987]
    """
    rates = chances("p", np.atleast_1d(np.asarray(p, dtype=np.float64)))
    counts(cutoff=cutoff)
    return objective(1 - (1 - rates) ** cutoff, intended)


def realised(
    algorithm: "Algorithm", mask: ArrayLike, intended: ArrayLike | None = None
) -> Objective:
    """The implicit weights of an algorithm along a mask [rounds, clients]: the mean of ω·1{n∈S}.

    >>> from turnout.algorithms import fedavg
    >>> realised(fedavg(), [[1, 0], [1, 1]]).shares.tolist()
    [0.75, 0.25]
    """
    from turnout.round import weights  # imports torch, which the other calculators do without

    table = np.asarray(mask, dtype=bool)
    return objective((table * weights(algorithm, table)).mean(axis=0), intended)


def quadratic_optimum(hessians: ArrayLike, centres: ArrayLike, shares: ArrayLike) -> Floats:
    """The minimum of Σ p̃_n · ½(x − c_n)ᵀ H_n (x − c_n); one Hessian [d, d] may serve for all.

    >>> quadratic_optimum([[1.0]], [[0.0], [3.0]], theorem_1([0.5, 0.1]).shares)
    array([0.5])
    """
    return _solve(*_quadratics(hessians, centres), _normalised("shares", shares))


def limit_point(
    hessians: ArrayLike, centres: ArrayLike, shares: ArrayLike, lr: float, steps: int
) -> Floats:
    """Where averaging ends on quadratics after local steps of size `lr`, client drift included.

    Client n's expected update is −(1 − (1 − γH_n)^I)(x − c_n), so the limit is the optimum for
    the Hessians 1 − (1 − γH_n)^I: that of h itself if all clients share one H, or as γ → 0.

    >>> limit_point([[[1.0]], [[0.5]]], [[0.0], [3.0]], [1.0, 1.0], lr=1.0, steps=1)
    array([1.])
    """
    curvatures, centred = _quadratics(hessians, centres)
    positive(lr=lr)
    counts(steps=steps)
    one = np.eye(curvatures.shape[-1])
    reach = one - np.linalg.matrix_power(one - lr * curvatures, steps)
    return _solve(reach, centred, _normalised("shares", shares))


def _quadratics(hessians: ArrayLike, centres: ArrayLike) -> tuple[Floats, Floats]:
    centred = np.asarray(centres, dtype=np.float64)
    require(centred.ndim == 2, "shape of centres", centred.shape, "(clients, dimensions)")
    clients, dim = centred.shape
    curvatures = np.asarray(hessians, dtype=np.float64)
    fits = curvatures.shape in ((dim, dim), (clients, dim, dim))
    require(fits, "shape of hessians", curvatures.shape, f"{(dim, dim)} or {(clients, dim, dim)}")
    return np.broadcast_to(curvatures, (clients, dim, dim)), centred


def _solve(curvatures: Floats, centred: Floats, shares: Floats) -> Floats:
    fits = len(shares) == len(centred)
    require(fits, "length of shares", len(shares), f"the number of centres, {len(centred)}")
    left = np.einsum("n,nij->ij", shares, curvatures)
    right = np.einsum("n,nij,nj->i", shares, curvatures, centred)
    return np.linalg.solve(left, right)
