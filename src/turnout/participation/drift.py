"""Coins whose bias changes over the rounds: non-stationary participation."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from turnout.draws import generator
from turnout.participation.coin import leading, toss
from turnout.participation.inputs import Chances, chances, positive, whole
from turnout.participation.process import Attendance, Participation, State


def sine_drift(
    p: Chances,
    clients: int | None = None,
    amplitude: float = 0.5,
    period: int = 500,
    spread: bool = False,
    seed: int = 0,
) -> Participation:
    """p_n swells and sinks over `period` rounds by up to `amplitude`·p_n and keeps its mean.

    p_n(t) = p_n + min(amplitude·p_n, 1 − p_n)·sin 2π(t/period + φ_n): the swing is cut where it
    would pass 1, rather than p_n(t), so that p_n remains the mean. φ_n = 0 for all, or random with
    `spread`, as if clients lived in all time zones.

    >>> mask = sine_drift(0.5, clients=1000, amplitude=1.0, period=4).mask(4)
    >>> mask.mean(axis=1).round(1).tolist()
    [0.5, 1.0, 0.5, 0.0]
    """
    p = chances("p", p, clients)
    amplitude = positive("amplitude", amplitude, most=1, zero=True)
    period = whole("period", period, least=2)
    seed = whole("seed", seed)
    swing = np.minimum(amplitude * p, 1 - p)
    phase = generator(seed, "sine drift phase").random(len(p)) if spread else np.zeros(1)
    # sin(a + b) = sin a cos b + cos a sin b: two products a round instead of a sine a client.
    sine = swing * np.cos(2 * np.pi * phase)
    cosine = swing * np.sin(2 * np.pi * phase) if spread else None

    def at(round: int) -> NDArray[np.float64]:
        angle = 2 * np.pi * (round % period) / period
        now: NDArray[np.float64] = p + np.sin(angle) * sine
        if cosine is not None:
            now += np.cos(angle) * cosine
        return np.clip(now, 0, 1, out=now)  # against the last bit of rounding only

    return _coins("sine_drift", len(p), at, seed, rates=p)


def step_drift(p: Chances, clients: int | None = None, *, at: int, seed: int = 0) -> Participation:
    """p_n until round `at`, then the same rates permuted among the clients.

    There are no long-run `rates`: what is expected of T rounds depends on where `at` lies in them.

    >>> step_drift([0.0, 1.0, 1.0, 1.0, 1.0], at=2).mask(4).sum(axis=1).tolist()
    [4, 4, 4, 4]
    """
    before = chances("p", p, clients)
    at = whole("at", at, least=1)
    seed = whole("seed", seed)
    after = generator(seed, "step drift order").permutation(before)
    return _coins("step_drift", len(before), lambda t: before if t < at else after, seed)


def _coins(
    name: str,
    clients: int,
    at: Callable[[int], NDArray[np.float64]],
    seed: int,
    rates: NDArray[np.float64] | None = None,
) -> Participation:
    def step(state: State, round: int) -> tuple[Attendance, State]:
        p = at(round)
        here = np.flatnonzero(toss(leading(p), p.item, seed, name, round))
        return Attendance(here, here), state

    return Participation(name, clients, dict, step, rates=rates)
