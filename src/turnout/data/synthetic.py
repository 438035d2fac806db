"""Problems whose optimum and constants are known: quadratics, and noisy least squares."""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from turnout.data.pool import Partition, Pool
from turnout.draws import generator
from turnout.errors import require
from turnout.room import require_room
from turnout.wording import counted

Vector = NDArray[np.float64]


@dataclass(frozen=True)
class Problem:
    """Clients with F_n(x) = ½ (x − c_n)ᵀ H (x − c_n) + r_n, as data and in closed form.

    One H for all is what makes the papers' constants exact: with curvatures of their own, the
    divergence between clients would grow without bound in x.
    """

    pool: Pool
    partition: Partition
    model: str
    """The name in `turnout.models.MODELS` of the model whose `half_squared` loss this is."""
    hessian: Vector  # H [d, d]
    centres: Vector  # c_n [N, d]
    residuals: Vector  # r_n [N]
    noise: float
    """σ: E‖∇F_n(x; ξ) − ∇F_n(x)‖² = σ² for one sample ξ of any client, at every x."""

    def __repr__(self) -> str:
        clients, dim = self.centres.shape
        constants = f"L = {self.smoothness:g}, μ = {self.convexity:g}, δ = {self.divergence:.4g}"
        return f"<{self.pool.name}: {counted(clients, 'client')}, {dim}-dimensional, {constants}>"

    @property
    def smoothness(self) -> float:
        """L, the largest eigenvalue of H."""
        return float(np.linalg.eigvalsh(self.hessian)[-1])

    @property
    def convexity(self) -> float:
        """μ, the smallest eigenvalue of H."""
        return float(np.linalg.eigvalsh(self.hessian)[0])

    @property
    def divergence(self) -> float:
        """δ = max_n ‖∇F_n(x) − ∇f(x)‖, for f = (1/N) Σ F_n; the same at every x."""
        apart = (self.centres - self.centres.mean(0)) @ self.hessian
        return float(np.linalg.norm(apart, axis=1).max())

    def optimum(self, shares: ArrayLike | None = None) -> Vector:
        """The minimum of Σ q_n F_n, for any weights q_n ≥ 0; None means equal ones.

        >>> quadratics([[0.0], [1.0]]).optimum([3.0, 1.0])
        array([0.25])
        """
        best: Vector = self._shares(shares) @ self.centres
        return best

    def value(self, x: ArrayLike, shares: ArrayLike | None = None) -> float:
        """Σ q_n F_n(x), with the q_n scaled to sum to 1."""
        apart = np.asarray(x, dtype=np.float64) - self.centres
        each = 0.5 * np.einsum("ni,ij,nj->n", apart, self.hessian, apart) + self.residuals
        return float(self._shares(shares) @ each)

    def gradients(self, x: ArrayLike) -> Vector:
        """∇F_n(x) for every client: [N, d]."""
        moved: Vector = (np.asarray(x, dtype=np.float64) - self.centres) @ self.hessian
        return moved

    def _shares(self, shares: ArrayLike | None) -> Vector:
        if shares is None:
            return np.full(len(self.centres), 1 / len(self.centres))
        q = np.asarray(shares, dtype=np.float64)
        good = q.shape == (len(self.centres),) and bool((q >= 0).all()) and q.sum() > 0
        require(good, "shares", shares, f"{len(self.centres)} numbers ≥ 0, not all of them 0")
        scaled: Vector = q / q.sum()
        return scaled


def quadratics(z: ArrayLike) -> Problem:
    """F_n(x) = ½‖x − z_n‖²: the motivating example of Generalized FedAvg, for any z_n [N, d].

    Client n holds one sample, z_n, so there is no noise, and L = μ = 1.
    """
    centres = np.asarray(z, dtype=np.float64)
    good = centres.ndim == 2 and centres.size > 0
    require(good, "shape of z", centres.shape, "(clients, dimensions)")
    clients, dim = centres.shape
    inputs = torch.from_numpy(centres.copy())
    return Problem(
        Pool(inputs, torch.zeros_like(inputs), name="quadratics"),
        Partition.of(np.arange(clients), clients),
        "point",
        np.eye(dim),
        centres,
        np.zeros(clients),
        0.0,
    )


def least_squares(
    clients: int,
    dim: int,
    samples: int,
    smoothness: float = 1.0,
    convexity: float = 0.1,
    noise: float = 1.0,
    divergence: float = 1.0,
    seed: int = 0,
) -> Problem:
    """½‖A x − b_ξ‖² with `samples` noisy b_ξ a client, and exactly the constants asked for.

    A is common, with AᵀA's eigenvalues spread evenly over [μ, L]. A client's b_ξ scatter around
    its own mean such that the gradient's variance is σ² = `noise`² at every x, and the means lie
    such that the largest distance of a client's gradient from the average one is δ = `divergence`.

    >>> problem = least_squares(clients=5, dim=3, samples=4, divergence=2.0)
    >>> round(problem.divergence, 6), len(problem.pool)
    (2.0, 20)
    """
    for name, count in (("clients", clients), ("dim", dim), ("samples", samples)):
        require(count >= 1, name, count, "at least 1")
    sizes = (clients, samples, dim)
    require_room("(clients, samples, dim)", sizes, "the samples", 2, *sizes)
    require_room("dim", dim, "the Hessian and its roots", 4, dim, dim)
    require(0 < convexity <= smoothness, "convexity", convexity, f"in (0, {smoothness}]")
    require(dim > 1 or convexity == smoothness, "convexity", convexity, "the smoothness for dim 1")
    require(noise >= 0, "noise", noise, "at least 0")
    require(noise == 0 or samples > 1, "samples", samples, "at least 2 where there is noise")
    require(divergence >= 0, "divergence", divergence, "at least 0")
    require(divergence == 0 or clients > 1, "clients", clients, "at least 2 for a divergence")
    draw = generator(seed, "least squares")
    basis, _ = np.linalg.qr(draw.normal(size=(dim, dim)))
    roots = np.sqrt(np.linspace(convexity, smoothness, dim))
    # A = √Λ Bᵀ: then AᵀA = B Λ Bᵀ, and A⁻ᵀ turns a shift of the gradient into one of b.
    design = roots[:, None] * basis.T
    to_targets = basis / roots

    # Everything is drawn as gradients and scaled there, where σ and δ are defined.
    start = draw.normal(size=dim)
    shifts = draw.normal(size=(clients, dim))
    shifts -= shifts.mean(0)
    longest = np.linalg.norm(shifts, axis=1).max()
    shifts *= divergence / longest if clients > 1 else 0.0
    scatter = draw.normal(size=(clients, samples, dim))
    scatter -= scatter.mean(1, keepdims=True)
    spread = np.sqrt(np.square(scatter).sum(2).mean(1))[:, None, None]
    scatter *= noise / spread if samples > 1 else 0.0

    hessian = design.T @ design
    centres = start + np.linalg.solve(hessian, shifts.T).T
    errors = scatter @ to_targets
    targets = (centres @ design.T)[:, None, :] + errors
    rows = clients * samples
    return Problem(
        Pool(
            torch.from_numpy(design).expand(rows, dim, dim),
            torch.from_numpy(targets.reshape(rows, dim)),
            name="least squares",
        ),
        Partition.of(np.repeat(np.arange(clients), samples), clients),
        "linear",
        hessian,
        centres,
        0.5 * np.square(errors).sum(2).mean(1),
        noise,
    )
