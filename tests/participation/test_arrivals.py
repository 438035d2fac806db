"""Replay of a log with durations: a round is an arrival."""

from pathlib import Path

import numpy as np
import pytest
from tests.participation.examples import csv

from turnout.errors import InputError
from turnout.participation import arrivals

HEADER = "client,started_s,took_s\n"


def rounds(folder: Path, text: str, count: int, **more) -> list[tuple[list[int], list[int]]]:
    process = arrivals(csv(folder, HEADER + text), **more)
    found = list(process.rounds(count))
    assert all(np.array_equal(came.cohort, came.delivered) for came in found)
    return [(came.began.tolist(), came.delivered.tolist()) for came in found]


def test_by_hand(tmp_path) -> None:
    # 0 works from 0 to 4 and from 4 to 9, 1 from 1 to 4, 2 from 9 to 10.
    text = "2,9,1\n0,0,4\n0,4,5\n1,1,3\n"
    expected = [
        ([0, 1], [0]),  # at 4: the lower number first
        ([], [1]),  # at 4, too; what starts at 4 does so after both
        ([0], [0]),
        ([2], [2]),
    ]
    assert rounds(tmp_path, text, 4) == expected
    assert rounds(tmp_path, text, 8)[4:] == expected  # and starts anew


def test_every_start_has_its_arrival_and_comes_before_it(tmp_path) -> None:
    draw = np.random.default_rng(0)
    lines = []
    for client in range(7):
        now = draw.uniform(0, 3)
        for _ in range(20):
            took = draw.integers(1, 5)  # whole seconds, so that many are at one instant
            lines.append(f"{client},{now!r},{took}")
            now += took + draw.integers(0, 2)
    text = "".join(f"{lines[k]}\n" for k in draw.permutation(len(lines)))
    at_work: set[int] = set()
    for began, came in rounds(tmp_path, text.replace("np.float64(", "").replace(")", ""), 140):
        assert not at_work & set(began)
        at_work |= set(began)
        assert set(came) <= at_work
        at_work -= set(came)
    assert not at_work


def test_sums_of_durations_need_not_be_exact(tmp_path) -> None:
    text = "".join(f"0,{k * 0.1!r},0.1\n" for k in range(50)) + "1,0,4.05\n"
    found = rounds(tmp_path, text, 51)
    assert [came for _, came in found].count([1]) == 1
    assert all(began in ([0], [0, 1], []) for began, _ in found)


def test_rates_are_shares_of_arrivals(tmp_path) -> None:
    process = arrivals(csv(tmp_path, HEADER + "0,0,1\n0,1,1\n2,0,5\n"), clients=4)
    assert process.rates.tolist() == pytest.approx([2 / 3, 0, 1 / 3, 0])
    assert (process.period, process.clients, process.asynchronous) == (3, 4, True)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "the number of lines in .* is 0"),
        ("0,0,0\n", r"took_s in .*line 2, is 0; it must be above 0"),
        ("0,-1,1\n", r"started_s in .*line 2, is -1; it must be at least 0"),
        (
            "0,0,5\n1,0,9\n0,4,1\n",
            r"started_s in .*line 4, is 4.*at least 5, when client 0 has done",
        ),
        ("0.5,0,5\n", "client in .*line 2, is 0.5"),
    ],
)
def test_bad_logs(tmp_path, text, sentence) -> None:
    with pytest.raises(InputError, match=sentence):
        arrivals(csv(tmp_path, HEADER + text))


def test_fewer_clients_than_there_are(tmp_path) -> None:
    with pytest.raises(InputError, match="clients is 1"):
        arrivals(csv(tmp_path, HEADER + "1,0,1\n"), clients=1)
