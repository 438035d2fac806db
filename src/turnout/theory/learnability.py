"""What can be learnt at all when some clients never come: SAFARI's Theorems 1 to 3.

Theorem 1 is a lower bound for every learner, Theorems 2 and 3 are rates (Õ(·): constants and
logarithms hidden) for a learner that also has data at the server. `turnout.theory.impossibility`
simulates Theorem 1's construction.
"""

from dataclasses import dataclass

from turnout.errors import require
from turnout.theory.bound import Bound, Condition, at_most, counts, positive


def theorem_1(clients: int, participating: int) -> Bound:
    """Theorem 1: in the worst case P[risk > (1−ω)/8] > 1/20 for every learner, ω = m/M.

    A lower bound on risk, whatever the number of samples: worst-case federated learning with
    missing clients is not PAC-learnable.

    >>> theorem_1(clients=10, participating=6).value
    0.05
    """
    counts(clients=clients, participating=participating)
    fits = participating <= clients
    require(fits, "participating", participating, f"at most the number of clients, {clients}")
    value = (1 - participating / clients) / 8
    return Bound.of(
        "SAFARI, Theorem 1",
        "the risk that some world inflicts with probability over 1/20",
        {"(1 − ω)/8": value},
        Condition("ω < 1: somebody never comes", participating < clients, participating, clients),
        kind="lower",
    )


@dataclass(frozen=True)
class Relation:
    """(α, β)-positively-related: |ε_P(h) − ε_Q(h)| ≤ α·ε_Q(h)^β for all hypotheses h."""

    alpha: float
    beta: float
    condition: str = ""


def thresholds(a: float, b: float, low: float, high: float) -> Relation:
    """The paper's example: P uniform on [a, b], Q on [a', b'] = [low, high] inside it, thresholds.

    α = 1 − (b'−a')/(b−a) and β = 1, for targets and hypotheses within [a', b'] only: where Q has
    no mass, P can punish a threshold that Q finds perfect (target a', hypothesis a: ε_Q = 0 and
    ε_P = (a'−a)/(b−a)).

    >>> thresholds(0, 1, 0.2, 0.8).alpha
    0.4
    """
    inside = a <= low < high <= b
    require(inside, "[low, high]", [low, high], f"an interval within [{a:g}, {b:g}]")
    alpha = 1 - (high - low) / (b - a)
    return Relation(round(alpha, 12), 1.0, f"targets and hypotheses in [{low:g}, {high:g}]")


def theorem_2(
    relation: Relation,
    dimension: float,
    server_samples: int,
    client_samples: int,
    noise_exponent: float = 1.0,
) -> Bound:
    """Theorem 2: ε_P(ĥ_Q) = Õ( (d/n)^{1/(2−β_Q)} + (d/n)^{β/(2−β_Q)} ), n = n_T + n_S.

    `dimension` is d_H (VC); `noise_exponent` is β_Q in [0, 1], 1 without label noise. The second
    term carries α, as ε_P ≤ ε_Q + α·ε_Q^β has it: with P = Q it vanishes.

    >>> theorem_2(Relation(0.4, 1.0), dimension=1, server_samples=20, client_samples=80).value
    0.014
    """
    positive(dimension=dimension)
    counts(server_samples=server_samples, client_samples=client_samples)
    _exponent(noise_exponent)
    ratio = dimension / (server_samples + client_samples)
    power = 1 / (2 - noise_exponent)
    return Bound.of(
        "SAFARI, Theorem 2",
        "ε_P(ĥ_Q), server's and clients' data",
        {
            "estimation, (d/n)^{1/(2−β_Q)}": ratio**power,
            "mismatch, α(d/n)^{β/(2−β_Q)}": relation.alpha * ratio ** (relation.beta * power),
        },
        at_most("n ≥ d", dimension, server_samples + client_samples),
        kind="order",
        note=relation.condition and f"for {relation.condition}",
    )


def theorem_3(
    dimension: float,
    server_samples: int,
    noise_exponent: float = 1.0,
    empirical_risk: float = 0.0,
    empirical_best: float = 0.0,
) -> Bound:
    """Theorem 3: Õ((d/n_T)^{1/(2−β_P)}), no worse than training on the server's data alone.

    On the server's data the learnt hypothesis must be as good as Q's best one:
    `empirical_risk` = R̂_P(ĥ_Q) ≤ `empirical_best` = R̂_P(h_Q); and ε_P(h_Q) = O(A(n_T, δ)).

    >>> theorem_3(dimension=1, server_samples=100, noise_exponent=0).value
    0.1
    """
    positive(dimension=dimension)
    counts(server_samples=server_samples)
    _exponent(noise_exponent)
    return Bound.of(
        "SAFARI, Theorem 3",
        "ε_P(ĥ_Q), compared with the server's data alone",
        {"(d/n_T)^{1/(2−β_P)}": (dimension / server_samples) ** (1 / (2 - noise_exponent))},
        at_most("R̂_P(ĥ_Q) ≤ R̂_P(h_Q)", empirical_risk, empirical_best),
        at_most("n_T ≥ d", dimension, server_samples),
        kind="order",
        note="and Q's best hypothesis must err on P by no more than this: ε_P(h_Q) = O(A(n_T, δ))",
    )


def _exponent(value: float) -> None:
    require(0 <= value <= 1, "noise_exponent", value, "in [0, 1]")
