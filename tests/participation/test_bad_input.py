"""Bad arguments of the constructors: one sentence with the field, the value and what is right."""

import re
from collections.abc import Callable

import numpy as np
import pytest

from turnout.errors import InputError
from turnout.participation import (
    Participation,
    always,
    bernoulli,
    cyclic,
    grouped,
    lossy,
    markov,
    record,
    regularised,
    sampled,
    sine_drift,
    step_drift,
    summarise,
    uniform,
)

NAN = float("nan")

WITH_P: list[Callable[..., Participation]] = [
    bernoulli,
    markov,
    cyclic,
    sine_drift,
    lambda p, clients=None, **rest: step_drift(p, clients, at=3, **rest),
]

BAD_P = [
    ((1.2, 5), "p is 1.2; it must be a probability, from 0 to 1"),
    ((-0.1, 5), "p is -0.1; it must be a probability, from 0 to 1"),
    ((NAN, 5), "p is nan; it must be a probability, from 0 to 1"),
    (([0.5, 0.1, -1e-9],), "p of client 2 is -1e-09; it must be a probability, from 0 to 1"),
    (([0.5, NAN],), "p of client 1 is nan; it must be a probability, from 0 to 1"),
    (([0.5, np.inf],), "p of client 1 is inf; it must be a probability, from 0 to 1"),
    (([0.5, 0.5], 3), "length of p is 2; it must be the number of clients, 3"),
    ((0.5,), "clients is None; it must be given where p is one for all"),
    ((0.5, 0), "clients is 0; it must be a whole number of at least 1"),
    ((0.5, 2.5), "clients is 2.5; it must be a whole number of at least 1"),
    (([],), "length of p is 0; it must be at least 1"),
    (("often", 5), "p is 'often'; it must be a probability, or a list with one for each client"),
    ((["a"],), "p is ['a']; it must be a probability, or a list with one for each client"),
    (([[0.5], [0.5, 0.1]],), "it must be a probability, or a list with one for each client"),
    (([[0.5, 0.5]],), "shape of p is (1, 2); it must be that of a probability, or a list"),
]


@pytest.mark.parametrize("build", WITH_P)
@pytest.mark.parametrize(("arguments", "message"), BAD_P)
def test_probabilities(
    build: Callable[..., Participation], arguments: tuple[object, ...], message: str
) -> None:
    with pytest.raises(InputError, match=re.escape(message)):
        build(*arguments)


COUNT = "it must be a whole number"

BAD: list[tuple[Callable[[], object], str]] = [
    (lambda: always(0), f"clients is 0; {COUNT} of at least 1"),
    (lambda: always(True), f"clients is True; {COUNT} of at least 1"),
    (lambda: uniform(10, 11), f"per_round is 11; {COUNT} from 1 to 10"),
    (lambda: uniform(10, 0), f"per_round is 0; {COUNT} from 1 to 10"),
    (lambda: uniform(10, 2.0), f"per_round is 2.0; {COUNT} from 1 to 10"),
    (lambda: uniform(10, 2, seed=-1), f"seed is -1; {COUNT} of at least 0"),
    (lambda: bernoulli(0.1, 5, seed=None), f"seed is None; {COUNT} of at least 0"),
    (lambda: markov(0.1, 5, seed=1.5), f"seed is 1.5; {COUNT} of at least 0"),
    (lambda: cyclic(0.1, 5, seed="x"), f"seed is 'x'; {COUNT} of at least 0"),
    (lambda: sampled(always(5), 2, seed=-1), f"seed is -1; {COUNT} of at least 0"),
    (lambda: lossy(always(5), 0.1, seed=-1), f"seed is -1; {COUNT} of at least 0"),
    (lambda: markov(0.1, 5, on=0), "on is 0.0; it must be a finite number above 0 and at most 1"),
    (lambda: markov(0.1, 5, on=1.5), "on is 1.5; it must be a finite number above 0 and at most"),
    (lambda: markov(0.1, 5, on=NAN), "on is nan; it must be a finite number above 0 and at most"),
    (lambda: cyclic(0.1, 5, period=0), f"period is 0; {COUNT} of at least 1"),
    (lambda: grouped(3, groups=4), f"groups is 4; {COUNT} from 1 to 3"),
    (lambda: grouped(3, groups=0), f"groups is 0; {COUNT} from 1 to 3"),
    (lambda: grouped(3, groups=1.5), f"groups is 1.5; {COUNT} from 1 to 3"),
    (lambda: grouped(3, groups=[0, 1]), "shape of groups is (2,); it must be (3,)"),
    (lambda: grouped(2, groups=[0, -1]), "the least of groups is -1; it must be at least 0"),
    (lambda: grouped(2, groups=[0, 10**12]), "the largest of groups is 1000000000000; it must be"),
    (lambda: grouped(3, groups=[0, 2, 2]), "the number of clients in group 1 is 0; it must be at"),
    (lambda: grouped(2, groups=[0.0, 1.0]), "groups is [0.0, 1.0]; it must be a number of groups"),
    (lambda: grouped(2, groups="two"), "groups is 'two'; it must be a number of groups, or the"),
    (lambda: grouped(2, groups=2, length=0), f"length is 0; {COUNT} of at least 1"),
    (lambda: regularised(5, 0), f"period is 0; {COUNT} of at least 1"),
    (lambda: sampled(always(5), 6), f"per_round is 6; {COUNT} from 1 to 5"),
    (lambda: lossy(always(2), 1.5), "loss is 1.5; it must be a probability, from 0 to 1"),
    (lambda: lossy(always(2), [0.1]), "length of loss is 1; it must be the number of clients, 2"),
    (lambda: sine_drift(0.1, 5, amplitude=1.1), "amplitude is 1.1; it must be a finite number of"),
    (lambda: sine_drift(0.1, 5, period=1), f"period is 1; {COUNT} of at least 2"),
    (lambda: step_drift(0.1, 5, at=0), f"at is 0; {COUNT} of at least 1"),
    (lambda: summarise(always(2), 0), f"rounds is 0; {COUNT} of at least 1"),
    (lambda: record(always(2), 0), f"rounds is 0; {COUNT} of at least 1"),
]


@pytest.mark.parametrize(("build", "message"), BAD)
def test_others(build: Callable[[], object], message: str) -> None:
    with pytest.raises(InputError, match=re.escape(message)) as error:
        build()
    assert "\n" not in str(error.value)


def test_numbers_of_numpy_are_numbers() -> None:
    process = uniform(np.int64(10), np.uint8(3), seed=np.int32(2))
    assert np.array_equal(process.mask(5), uniform(10, 3, seed=2).mask(5))
