"""FedAU's convergence bounds with explicit constants, and the step sizes of Corollary 4.

Wang & Ji, "A Lightweight Method for Tackling Unknown Participation Statistics in Federated
Averaging", ICLR 2024. Theorem 1 is in `turnout.theory.objective`; intervals, Theorem 3 and the
cutoff K are in `turnout.theory.intervals`.

Letters: gap F, smoothness L, noise σ, divergence δ (`Constants`); local_steps I, lr γ,
server_lr η, rounds T, clients N. Participation is independent of earlier rounds.
"""

from math import inf, sqrt

import numpy as np
from numpy.typing import ArrayLike

from turnout.errors import require
from turnout.participation.inputs import chances
from turnout.theory.bound import Bound, Condition, Setting, at_most, counts, nonnegative, positive
from turnout.theory.constants import Constants


def b_4_4(
    constants: Constants,
    local_steps: int,
    lr: float,
    server_lr: float,
    rounds: int,
    p: ArrayLike,
    weights: ArrayLike | None = None,
) -> Bound:
    """B.4.4, constant weights ω_n: (1/T) Σ E‖∇h(x_t)‖², with `gap` h(x_0) − h*.

    η̃ = ηP/N and α_n = ω_n·N/P with P = Σ ω_n p_n, so that x moves by (η̃/N) Σ α_n Δ_n.

    >>> print(b_4_4(Constants(smoothness=1, gap=1), local_steps=1, lr=0.01, server_lr=1,
    ...     rounds=800, p=[1.0]))
    FedAU, B.4.4: (1/T) Σ E‖∇h(x_t)‖² ≤ 1
      start, 8F/(γη̃IT)                   1   100 %  largest
      local drift                        0     0 %
      noise and participation            0     0 %
    Conditions
      holds  15L²I²γ² + (27γη̃LI/(8N²))·Σ p_n α_n² ≤ 1/8   (0.03525 against 0.125)
    constants explicit: an upper bound where every condition holds
    """
    nonnegative(gap=constants.gap)
    positive(lr=lr, server_lr=server_lr)
    counts(local_steps=local_steps, rounds=rounds)
    rates = chances("p", np.atleast_1d(np.asarray(p, dtype=np.float64)))
    omega = np.ones(len(rates)) if weights is None else np.asarray(weights, dtype=np.float64)
    good = omega.shape == rates.shape and bool((omega >= 0).all()) and (omega * rates).sum() > 0
    require(good, "weights", weights, f"{len(rates)} numbers of at least 0, one a client")
    L, N = constants.smoothness, len(rates)
    variance, divergence = constants.noise**2, (2 * constants.divergence) ** 2  # of ∇F_n from ∇h
    total = float((omega * rates).sum())
    step = lr * server_lr * total / N  # γη̃
    squares = float((rates * (omega * N / total) ** 2).sum()) / N**2
    mixed = 17 / 16 * variance + 27 / 8 * local_steps * divergence
    return Bound.of(
        "FedAU, B.4.4",
        "(1/T) Σ E‖∇h(x_t)‖²",
        {
            "start, 8F/(γη̃IT)": 8 * constants.gap / (step * local_steps * rounds),
            "local drift": 20
            * lr**2
            * L**2
            * local_steps
            * (variance + 6 * local_steps * divergence),
            "noise and participation": 8 * step * L * mixed * squares,
        },
        at_most(
            "15L²I²γ² + (27γη̃LI/(8N²))·Σ p_n α_n² ≤ 1/8",
            15 * (L * local_steps * lr) ** 2 + 27 / 8 * step * L * local_steps * squares,
            1 / 8,
        ),
    )


def weight_statistics(p: ArrayLike, weights: ArrayLike) -> tuple[float, float]:
    """(1/N) Σ (p_n ω_n − 1)² and Q = (1/N) Σ p_n ω_n² of weights [clients] or [rounds, clients].

    Of several rounds, the mean of the first and the largest of the second.

    >>> weight_statistics([0.5, 0.25], [2.0, 2.0])
    (0.125, 1.5)
    """
    rates = chances("p", np.atleast_1d(np.asarray(p, dtype=np.float64)))
    omega = np.atleast_2d(np.asarray(weights, dtype=np.float64))
    fits = omega.ndim == 2 and omega.shape[1] == len(rates)
    require(fits, "shape of weights", omega.shape, f"[rounds, {len(rates)}]")
    errors = np.square(rates * omega - 1).mean(axis=1)
    return float(errors.mean()), float((rates * omega**2).mean(axis=1).max())


def b_5_3(
    constants: Constants,
    clients: int,
    local_steps: int,
    lr: float,
    server_lr: float,
    weight_error: float,
    weight_square: float,
    rounds: int = 1,
) -> Bound:
    """B.5.3, any weights, where ‖∇f‖ ≤ G: (1/T) Σ E‖∇f(x_t)‖².

    `weight_error` is the mean over rounds of (1/N) Σ (p_n ω_n − 1)², `weight_square` is Q, the
    largest (1/N) Σ p_n ω_n² of a round (`weight_statistics`). For one round, `gap` is
    f_t − f_{t+1}.

    >>> b_5_3(Constants(smoothness=1, gap=1, gradient=2), clients=10, local_steps=1, lr=0.01,
    ...     server_lr=1, weight_error=0.5, weight_square=2, rounds=1600).terms["weight error"]
    81.0
    """
    spread = constants.divergence**2 + constants.gradient**2
    terms = _terms(
        constants,
        spread,
        clients,
        local_steps,
        lr,
        server_lr,
        weight_error,
        weight_square,
        rounds,
    )
    limits = _step_limits(constants, clients, local_steps, lr, lr * server_lr, weight_square)
    return Bound.of("FedAU, B.5.3", "(1/T) Σ E‖∇f(x_t)‖²", terms, *limits)


def b_5_5(
    constants: Constants,
    clients: int,
    local_steps: int,
    lr: float,
    server_lr: float,
    weight_error: float,
    weight_square: float,
    rounds: int = 1,
) -> Bound:
    """B.5.5, no bound on gradients, where every round's (1/N) Σ (p_n ω_n − 1)² ≤ 1/81.

    Twice B.5.3 with G = 0.

    >>> b_5_5(Constants(smoothness=1, gap=1), clients=10, local_steps=1, lr=0.01, server_lr=1,
    ...     weight_error=0, weight_square=2, rounds=1600).value
    1.0
    """
    terms = _terms(
        constants,
        constants.divergence**2,
        clients,
        local_steps,
        lr,
        server_lr,
        weight_error,
        weight_square,
        rounds,
    )
    small = at_most("(1/N)·Σ (p_n ω_n − 1)² ≤ 1/81", weight_error, 1 / 81)
    limits = _step_limits(constants, clients, local_steps, lr, lr * server_lr, weight_square)
    doubled = {text: 2 * term for text, term in terms.items()}
    return Bound.of("FedAU, B.5.5", "(1/T) Σ E‖∇f(x_t)‖²", doubled, small, *limits)


def corollary_4_steps(
    constants: Constants, clients: int, local_steps: int, weight_square: float, rounds: int
) -> tuple[Setting, Setting]:
    """Corollary 4: γ = min{1/(LI√T), 1/(4√15·LI)}, and η from the γη that the paper gives.

    γη = min{√(F·N/(Q(Iδ² + σ²)·L·I·T)), 1/(4LI), N/(54·L·I·Q)}. Once weights have settled,
    Q is about (1/N) Σ 1/p_n.

    >>> constants = Constants(smoothness=1, gap=1, noise=1)
    >>> lr, server_lr = corollary_4_steps(constants, clients=100, local_steps=1, weight_square=1,
    ...     rounds=10_000)
    >>> lr.value, round(server_lr.value, 6)  # √(100/10⁴) = 0.1 = γη
    (0.01, 10.0)
    """
    positive(weight_square=weight_square, gap=constants.gap)
    counts(clients=clients, local_steps=local_steps, rounds=rounds)
    L, N, T, Q = constants.smoothness, clients, rounds, weight_square
    lr = Setting.least(
        "lr",
        "γ",
        {
            "1/(L·I·√T)": 1 / (L * local_steps * sqrt(T)),
            "1/(4√15·L·I)": 1 / (4 * sqrt(15) * L * local_steps),
        },
        "FedAU, Corollary 4",
    )
    randomness = (
        Q * (local_steps * constants.divergence**2 + constants.noise**2) * L * local_steps * T
    )
    limits = {
        "√(F·N/(Q(Iδ² + σ²)·L·I·T))": sqrt(constants.gap * N / randomness) if randomness else inf,
        "1/(4LI)": 1 / (4 * L * local_steps),
        "N/(54·L·I·Q)": N / (54 * L * local_steps * Q),
    }
    server_lr = Setting.least(
        "server_lr",
        "η",
        {f"{text} / γ": limit / lr.value for text, limit in limits.items()},
        "FedAU, Corollary 4",
    )
    return lr, server_lr


def corollary_4(
    constants: Constants,
    clients: int,
    local_steps: int,
    weight_error: float,
    weight_square: float,
    rounds: int,
) -> Bound:
    """Corollary 4: B.5.3 at the recommended step sizes; O(1/√(NIT)) in the leading term.

    The paper prints orders; with B.5.3 beneath, the constants are explicit.

    >>> bound = corollary_4(Constants(smoothness=1, gap=1, noise=1), clients=100, local_steps=1,
    ...     weight_error=0, weight_square=1, rounds=10_000)
    >>> bound.dominant, bound.note
    ('noise and participation', 'at lr = 0.01, server_lr = 10')
    """
    lr, server_lr = corollary_4_steps(constants, clients, local_steps, weight_square, rounds)
    bound = b_5_3(
        constants,
        clients,
        local_steps,
        lr.value,
        server_lr.value,
        weight_error,
        weight_square,
        rounds,
    )
    return Bound.of(
        "FedAU, Corollary 4 (by B.5.3)",
        bound.quantity,
        bound.terms,
        *bound.conditions,
        note=f"at {lr.name} = {lr.value:.4g}, {server_lr.name} = {server_lr.value:.4g}",
    )


def _terms(
    constants: Constants,
    spread: float,
    clients: int,
    local_steps: int,
    lr: float,
    server_lr: float,
    weight_error: float,
    weight_square: float,
    rounds: int,
) -> dict[str, float]:
    nonnegative(weight_error=weight_error, weight_square=weight_square)
    positive(lr=lr, server_lr=server_lr)
    counts(clients=clients, local_steps=local_steps, rounds=rounds)
    if rounds > 1:
        nonnegative(gap=constants.gap)
    L, step = constants.smoothness, lr * server_lr
    variance, divergence = constants.noise**2, constants.divergence**2
    missed = 15 * L**2 * local_steps * lr**2 * variance + 27 / 8 * spread
    mixed = 17 / 2 * variance + 27 * local_steps * divergence
    return {
        "start, F/(γηIT)": 8 * constants.gap / (step * local_steps * rounds),
        "weight error": 12 * weight_error * missed,
        "local drift": 20 * lr**2 * L**2 * local_steps * (variance + 6 * local_steps * divergence),
        "noise and participation": step * L / clients * mixed * weight_square,
    }


def _step_limits(
    constants: Constants, clients: int, local_steps: int, lr: float, step: float, square: float
) -> tuple[Condition, ...]:
    L = constants.smoothness
    return (
        at_most("γ ≤ 1/(4√15·L·I)", lr, 1 / (4 * sqrt(15) * L * local_steps)),
        at_most("γη ≤ 1/(4LI)", step, 1 / (4 * L * local_steps)),
        at_most(
            "γη ≤ N/(54·L·I·Q)", step, clients / (54 * L * local_steps * square) if square else inf
        ),
    )
