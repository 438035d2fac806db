"""Replay of availability logs, against brute force and on the log of 300 real phones."""

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.participation.examples import csv

from turnout.errors import InputError
from turnout.participation import trace

HEADER = "client,available_from_s,available_until_s\n"
DAY = 86_400

Interval = tuple[int, int, int]


def written(folder: Path, intervals: list[Interval]) -> Path:
    return csv(folder, HEADER + "".join(f"{c},{f},{u}\n" for c, f, u in intervals))


@st.composite
def logs(draw: st.DrawFn) -> list[Interval]:
    """Intervals of whole seconds in [0, 40], in any order; some touch."""
    found: list[Interval] = []
    for client in range(draw(st.integers(1, 4))):
        marks = sorted(draw(st.sets(st.integers(0, 40), max_size=8)))
        found += [(client, a, b) for a, b in pairwise(marks) if draw(st.booleans())]
    return draw(st.permutations(found or [(0, 3, 7)]))


def seconds(intervals: list[Interval], clients: int, period: int) -> np.ndarray:
    """Who is there in which second of the repeating trace: [period, clients]."""
    there = np.zeros((period, clients), dtype=bool)
    for c, f, u in intervals:
        there[f : min(u, period), c] = True
    return there


@settings(max_examples=200)
@given(
    log=logs(),
    round_s=st.integers(1, 60),
    period=st.none() | st.integers(1, 60),
)
def test_against_brute_force(
    tmp_path_factory: pytest.TempPathFactory,
    log: list[Interval],
    round_s: int,
    period: int | None,
) -> None:
    path = written(tmp_path_factory.mktemp("trace"), log)
    clients = max(c for c, _, _ in log) + 2
    every = period or max(u for _, _, u in log)
    there = seconds(log, clients, every)
    process = trace(path, round_s, clients, period, whole_round=True)
    rounds = np.lcm(round_s, every) // round_s
    cohort, delivered = process.mask(rounds, cohort=True), process.mask(rounds)
    for t in range(rounds):
        during = there[(t * round_s + np.arange(round_s)) % every]
        assert cohort[t].tolist() == during[0].tolist()
        assert delivered[t].tolist() == during.all(axis=0).tolist()
    # Round starts come back after `rounds` rounds, so that the rates are exact there.
    assert process.rates == pytest.approx(delivered.mean(axis=0), abs=1e-12)
    starts = trace(path, round_s, clients, period)
    assert np.array_equal(starts.mask(rounds), cohort)
    assert starts.rates == pytest.approx(cohort.mean(axis=0), abs=1e-12)


def test_by_hand(tmp_path: Path) -> None:
    #   round      0  1  2  3  4 | 5 …   of 10 s each, 50 s in all
    #   client 0   0–––25         |      there at 0, 10, 20; through 0 and 1
    #   client 1      10––––40    |      there at 10, 20, 30, gone at 40 sharp; through all three
    #   client 2            30–––50      there at 30, 40; through both; and not at 50 = 0
    path = written(tmp_path, [(0, 0, 25), (1, 10, 40), (2, 30, 50)])
    asked = trace(path, 10).mask(6).astype(int).tolist()
    assert asked == [[1, 0, 0], [1, 1, 0], [1, 1, 0], [0, 1, 1], [0, 0, 1], [1, 0, 0]]
    through = trace(path, 10, whole_round=True)
    assert through.mask(6, cohort=True).astype(int).tolist() == asked
    assert through.mask(6).astype(int).tolist() == [
        [1, 0, 0],
        [1, 1, 0],
        [0, 1, 0],
        [0, 1, 1],
        [0, 0, 1],
        [1, 0, 0],
    ]


def test_around_the_end_without_a_break(tmp_path: Path) -> None:
    path = written(tmp_path, [(0, 0, 10), (0, 35, 50), (1, 0, 50)])
    through = trace(path, 20, whole_round=True).mask(5)
    # Rounds start at 0, 20, 40, 10, 30 of the trace; the third runs from 40 through 50 = 0 to 10.
    assert through[:, 0].tolist() == [False, False, True, False, False]
    assert through[:, 1].all()


def test_rounds_that_do_not_divide_the_trace(tmp_path: Path) -> None:
    path = written(tmp_path, [(0, 0, 1), (1, 3, 4)])
    mask = trace(path, 2.5, period_s=4).mask(8)  # starts: 0, 2.5, 1, 3.5, 2, 0.5, 3, 1.5
    assert np.flatnonzero(mask[:, 0]).tolist() == [0, 5]
    assert np.flatnonzero(mask[:, 1]).tolist() == [3, 6]
    assert trace(path, 2.5, period_s=4).rates.tolist() == [0.25, 0.25]


def test_what_lies_beyond_the_period_is_cut(tmp_path: Path) -> None:
    path = written(tmp_path, [(0, 5, 30), (1, 12, 20)])
    mask = trace(path, 1, period_s=10).mask(20)
    assert mask[:, 0].tolist() == ([False] * 5 + [True] * 5) * 2
    assert not mask[:, 1].any()


def test_other_columns_blank_lines_and_comments_are_skipped(tmp_path: Path) -> None:
    text = (
        "\ufeff# a comment, with a comma\n available_until_s,model , client,available_from_s\n\n"
        '20,"a, b",1,10\n , ,,\n5,x,0,0\n'
    )
    path = tmp_path / "odd.csv"
    path.write_text(text, encoding="utf-8")
    assert trace(path, 10).mask(2).tolist() == [[True, False], [False, True]]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("0,0,10\n0,5,20\n", "available_from_s in {}, line 3, is 5.0; it must be at least 10, wh"),
        ("0,5,20\n1,0,9\n0,0,10\n", "available_from_s in {}, line 2, is 5.0; it must be at leas"),
        ("0,0,90\n0,95,99\n0,3,4\n", "line 4, is 3.0; it must be at least 90, where the interval"),
        ("0,10,5\n", "available_until_s in {}, line 2, is 5; it must be later than the line's"),
        ("0,7,7\n", "available_until_s in {}, line 2, is 7; it must be later than the line's"),
        ("0,0,1\n\n1,-3,5\n", "available_from_s in {}, line 4, is -3; it must be at least 0"),
        ("0,0,1\n1,soon,5\n", "available_from_s in {}, line 3, is 'soon'; it must be a finite"),
        ("0,0,nan\n", "available_until_s in {}, line 2, is 'nan'; it must be a finite number"),
        ("0,0,inf\n", "available_until_s in {}, line 2, is 'inf'; it must be a finite number"),
        ("0,0\n", "available_until_s in {}, line 2, is ''; it must be a finite number"),
        ("0,,4\n", "available_from_s in {}, line 2, is ''; it must be a finite number"),
        ("1.5,0,4\n", "client in {}, line 2, is 1.5; it must be a client's number, from 0 to"),
        ("-1,0,4\n", "client in {}, line 2, is -1; it must be a client's number, from 0 to"),
        ("8123456789012,0,4\n", "line 2, is 8123456789012; it must be a client's number, from 0"),
        ("phone,0,4\n", "client in {}, line 2, is 'phone'; it must be a finite number"),
        ("", "the number of intervals in {} is 0; it must be at least 1"),
    ],
)
def test_bad_rows(tmp_path: Path, rows: str, message: str) -> None:
    path = csv(tmp_path, HEADER + rows)
    with pytest.raises(InputError) as error:
        trace(path, 10)
    assert message.format(path) in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("client,from,until\n0,1,2\n", "is 'client, from, until'; it must be one with a column"),
        ("", "the header of {} is ''; it must be the names of the columns: client, availab"),
        ("# only=this\n", "the header of {} is ''; it must be the names of the columns: client,"),
        ("\x00\xff", "cannot be read as CSV"),
    ],
)
def test_bad_files(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "trace.csv"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(InputError) as error:
        trace(path, 10)
    assert message.format(path) in str(error.value)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"round_s": 0}, "round_s is 0.0; it must be a finite number above 0"),
        ({"round_s": float("nan")}, "round_s is nan; it must be a finite number above 0"),
        ({"round_s": "1m"}, "round_s is '1m'; it must be a finite number above 0"),
        ({"round_s": 1, "period_s": -1}, "period_s is -1.0; it must be a finite number above 0"),
        ({"round_s": 1, "clients": 5}, "clients is 5; it must be a whole number of at least 6"),
    ],
)
def test_bad_arguments(tmp_path: Path, arguments: dict[str, object], message: str) -> None:
    with pytest.raises(InputError) as error:
        trace(csv(tmp_path), **arguments)
    assert message in str(error.value)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no\.csv cannot be read as CSV: No such file"):
        trace(tmp_path / "no.csv", 10)
    with pytest.raises(InputError, match="cannot be read as CSV: Is a directory"):
        trace(tmp_path, 10)


@pytest.fixture
def phones(shared_data: Path) -> Path:
    return shared_data / "traces" / "phones300.csv"


def test_phones_availability(phones: Path) -> None:
    process = trace(phones, round_s=1, period_s=6 * DAY)
    assert process.clients == 300
    assert process.rates.mean() == pytest.approx(0.161, abs=0.001)
    assert np.flatnonzero(process.rates == 0).tolist() == [54, 57, 220]
    assert process.rates.max() == pytest.approx(0.906, abs=0.002)


def test_phones_against_brute_force(phones: Path) -> None:
    client, start, end = np.loadtxt(phones, delimiter=",", skiprows=1, dtype=np.int64).T
    round_s, rounds = 900, 6 * 96
    expected = np.zeros((rounds, 300), dtype=bool)
    for c, f, u in zip(client.tolist(), start.tolist(), end.tolist(), strict=True):
        first, last = -(-f // round_s), -(-u // round_s)
        expected[first:last, c] = True
    process = trace(phones, round_s, period_s=6 * DAY)
    mask = process.mask(2 * rounds)
    assert np.array_equal(mask[:rounds], expected)
    assert np.array_equal(mask[rounds:], expected)
    assert mask.mean() == pytest.approx(0.161, abs=0.002)
    assert process.rates == pytest.approx(expected.mean(axis=0))


def test_phones_keep_the_time_of_day(phones: Path) -> None:
    there = trace(phones, 3600, period_s=6 * DAY).mask(6 * 24).sum(axis=1)
    day, half = (np.corrcoef(there, np.roll(there, lag))[0, 1] for lag in (24, 12))
    assert day > 0.3
    assert half < day - 0.3


def test_phones_that_stay_for_a_whole_round(phones: Path) -> None:
    process = trace(phones, 600, period_s=6 * DAY, whole_round=True)
    asked, delivered = process.mask(864, cohort=True), process.mask(864)
    assert process.rates == pytest.approx(delivered.mean(axis=0))
    assert 0.85 < delivered.sum() / asked.sum() < 0.95
