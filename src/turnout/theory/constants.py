"""The constants that the theorems take: what the papers assume of the losses."""

from dataclasses import dataclass
from math import isfinite

from turnout.errors import require
from turnout.theory.bound import nonnegative, positive


@dataclass(frozen=True)
class Constants:
    """Properties of a federation's losses, under the papers' letters.

    `turnout.theory.estimate` measures them on a model and data.

    >>> Constants(smoothness=0)
    Traceback (most recent call last):
    turnout.errors.InputError: smoothness is 0; it must be a finite number above 0
    """

    smoothness: float
    """L: no gradient changes faster than L times the distance."""
    gap: float = 0.0
    """F = f(x_0) − f*: how much there is to gain."""
    noise: float = 0.0
    """σ: E‖∇F_n(x; ξ) − ∇F_n(x)‖² ≤ σ² for a client's mini-batch ξ."""
    divergence: float = 0.0
    """δ (FedAU) or σ_G (SAFARI): ‖∇F_n(x) − ∇f(x)‖ ≤ δ for every client."""
    convexity: float = 0.0
    """μ of strong convexity; 0 where there is none."""
    gradient: float = 0.0
    """G: ‖∇f(x)‖ ≤ G."""
    server_noise: float = 0.0
    """σ_s: as σ, for a mini-batch of the server's own data."""
    bias: float | None = None
    """ζ: how far the mean gradient of those who can come lies from ∇f; None: no more than δ."""

    def __post_init__(self) -> None:
        positive(smoothness=self.smoothness)
        nonnegative(
            noise=self.noise,
            divergence=self.divergence,
            convexity=self.convexity,
            gradient=self.gradient,
            server_noise=self.server_noise,
            bias=0.0 if self.bias is None else self.bias,
        )
        # A single round may lose ground, so that its gap f_t − f_{t+1} is negative.
        require(isfinite(self.gap), "gap", self.gap, "a finite number")
        fits = self.convexity <= self.smoothness
        require(fits, "convexity", self.convexity, f"at most the smoothness, {self.smoothness:g}")
