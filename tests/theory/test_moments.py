"""The exact moments that the bounds are checked against, themselves checked against sampled runs."""

import numpy as np
import pytest
from tests.theory.moments import (
    at,
    bernoulli_weights,
    client_round,
    draw,
    server_round,
    uniform_weights,
)
from tests.theory.play import play

from turnout import Local, draws
from turnout.algorithms import amplified, fedavg, known, safari
from turnout.participation import bernoulli, excluded, uniform


def _agree(ends: np.ndarray, now) -> None:  # type: ignore[no-untyped-def]
    for power, expected in ((1, now.mean), (2, now.square)):
        values = ends**power
        error = values.std(axis=0) / len(ends) ** 0.5
        assert (np.abs(values.mean(axis=0) - expected) < 5 * error + 1e-12).all()


@pytest.mark.parametrize("method", ["known", "fedavg", "safari", "amplified"])
def test_our_runs_have_the_moments_that_the_recursion_says(method: str) -> None:
    generator = draws.generator(3, "moments of tests")
    setting = draw(generator, clients=4)
    curvature, centres, dim = setting.curvature, setting.centres, len(setting.curvature)
    sigma, start = 0.5, np.full(dim, 2.0)
    noise = np.full(dim, sigma**2 / dim)
    local, rounds = Local(lr=0.2, steps=3), 6
    p = np.array([0.3, 0.9, 0.5, 0.6])
    if method == "known":
        algorithm = known(p, local=local)
        weights = bernoulli_weights(p, 1 / p, 1.0)
        process = lambda seed: bernoulli(p, seed=seed)  # noqa: E731
    else:
        weights = uniform_weights(4, come=3, per_round=2)
        process = lambda seed: excluded(uniform(4, 2, seed=seed), [3])  # noqa: E731
        algorithm = fedavg(local=local)
    step = client_round(curvature, centres, weights, 0.2, 3, noise)
    if method == "safari":
        algorithm = safari(0.6, server_steps=1, assistance_lr=0.3, inner=algorithm)
        step = step.or_with(0.6, server_round(curvature, centres.mean(axis=0), 0.3, noise))
    now = at(start)
    if method == "amplified":
        algorithm = amplified(3, 2.0, inner=algorithm)
        step, count = step.times(3).amplified(2.0), 2
    else:
        count = rounds
    for _ in range(count):
        now = step(now)
    ends = [
        play(
            algorithm,
            np.diag(curvature),
            centres,
            process(seed).mask(rounds),
            start,
            sigma,
            sigma,
            seed,
        )[-1]
        for seed in range(400)
    ]
    _agree(np.array(ends), now)


def test_steps_compose() -> None:
    setting = draw(draws.generator(0, "moments of tests"), clients=3)
    weights = uniform_weights(3, 3, 2)
    step = client_round(setting.curvature, setting.centres, weights, 0.1, 2, setting.noise)
    now = at(setting.start)
    for _ in range(7):
        now = step(now)
    np.testing.assert_allclose(step.times(7)(at(setting.start)).square, now.square, rtol=1e-12)
