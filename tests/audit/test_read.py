"""Logs of every form become the same history; bad ones are mended with a count, or refused."""

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from turnout.audit.read import read_history
from turnout.errors import InputError
from turnout.flower.participation_log import Entry, append
from turnout.participation import bernoulli, export, lossy, record, trace


@pytest.fixture
def log(tmp_path: Path):
    def write(text: str, name: str = "log.csv") -> Path:
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return path

    return write


@pytest.mark.parametrize("ending", ["csv", "parquet", "npy"])
def test_own_logs(tmp_path: Path, ending: str) -> None:
    own = record(lossy(bernoulli(0.4, clients=5), 0.3), 30)
    export(own, tmp_path / f"log.{ending}")
    history = read_history(tmp_path / f"log.{ending}")
    assert (own.mask() == history.dense(np.arange(5)).T).all()
    if ending != "npy":
        assert history.asked is not None
        assert (history.asked == own.mask(cohort=True).sum(axis=0)).all()


def test_the_flower_log(tmp_path: Path) -> None:
    path = tmp_path / "participation.csv"
    for t in range(3):
        entries = [
            Entry(t, 0, 1, "a", 1.0, 2.0, "delivered"),
            Entry(t, 2, 0, "c", 1.0, None, "late"),
        ]
        append(path, entries, t + 1, 4)
    history = read_history(path)
    assert (history.clients, history.rounds) == (4, 3)
    assert history.counts.tolist() == [3, 0, 0, 0]
    assert history.asked is not None
    assert history.asked.tolist() == [3, 0, 3, 0]
    assert [history.name(n) for n in range(4)] == ["a", "1", "c", "3"]


def test_mended_pairs(log: Any) -> None:
    history = read_history(log("round,client\n5,1\n1,0\n5,1\n\n# a remark\n2,1\n"), clients=4)
    assert history.counts.tolist() == [1, 2, 0, 0]
    assert dict(history.mends) == {
        "entries out of order": 2,
        "duplicate entries": 1,
        "rounds counted from 1, now from 0": 1,
    }
    assert history.rounds == 5


def test_intervals_agree_with_trace(shared_data: Path) -> None:
    path = shared_data / "traces" / "phones300.csv"
    history = read_history(path, 1800)
    mask = trace(path, 1800.0).mask(history.rounds)
    assert (mask == history.dense(np.arange(history.clients)).T).all()


PLAIN = "round,client\n0,7\n1,9\n2,7\n"
SPELT_OTHERWISE = {
    "a mark of byte order": "\ufeff" + PLAIN,
    "ends of lines": PLAIN.replace("\n", "\r\n"),
    "quotes": '"round","client"\n"0","7"\n"1","9"\n"2","7"\n',
    "capitals": "Server Round; Client-ID\n0;7\n1;9\n2;7\n",
    "pandas": ",round,client\n0,0.0,7\n1,1.0,9\n2,2.0,7\n",
    "tabs": PLAIN.replace(",", "\t"),
}


@pytest.mark.parametrize("how", SPELT_OTHERWISE)
def test_the_same_log_spelt_otherwise(log: Any, how: str) -> None:
    history = read_history(log(SPELT_OTHERWISE[how]), clients=10)
    assert history.counts.tolist() == [0] * 7 + [2, 0, 1]


def arrow(values: Any, kind: str) -> Any:
    return pyarrow.array(values).cast(kind)


OTHER_TYPES = {
    "categories": {"client": pyarrow.array(["a", "b", "a"]).dictionary_encode()},
    "large text": {"client": arrow(["a", "b", "a"], "large_string")},
    "views": {"client": arrow(["a", "b", "a"], "string_view")},
    "bytes": {"client": pyarrow.array([b"a", b"b", b"a"])},
    "whole floats": {"round": pyarrow.array([0.0, 1.0, 2.0])},
    "small numbers": {"round": arrow([0, 1, 2], "uint8")},
    "gaps elsewhere": {"note": pyarrow.array([None, 1, None]), "blob": [b"\xff", b"", None]},
}


@pytest.mark.parametrize("kind", OTHER_TYPES)
def test_other_types_in_parquet(tmp_path: Path, kind: str) -> None:
    columns = {"round": [0, 1, 2], "client": ["a", "b", "a"], **OTHER_TYPES[kind]}
    parquet.write_table(pyarrow.table(columns), tmp_path / "log.parquet")
    history = read_history(tmp_path / "log.parquet")
    assert history.names == ["a", "b"]
    assert [history.of(n).tolist() for n in range(2)] == [[0, 2], [1]]


@pytest.mark.parametrize(
    ("columns", "match"),
    [
        ({"round": [0, 1], "client": ["a", None]}, "client in .*, row 2, is None"),
        ({"round": [0.0, 0.5], "client": ["a", "b"]}, "round in .*, row 2, is 0.5"),
        ({"round": [[0], [1]], "client": ["a", "b"]}, "the type of round in .* is 'list"),
        ({"round": [0, 1], "client": [b"\xff\xfe", b"a"]}, "the type of client in .* is 'binary"),
        ({"client": ["a"], "start": [None], "end": [1.0]}, "start in .*, row 1, is None"),
    ],
)
def test_refused_in_parquet(tmp_path: Path, columns: dict[str, Any], match: str) -> None:
    parquet.write_table(pyarrow.table(columns), tmp_path / "log.parquet")
    with pytest.raises(InputError, match=match):
        read_history(tmp_path / "log.parquet")


def test_dates_are_times(tmp_path: Path) -> None:
    days = pyarrow.array([20, 21, 25], "date32")
    table = pyarrow.table({"client": ["a", "b", "a"], "time": days})
    parquet.write_table(table, tmp_path / "log.parquet")
    history = read_history(tmp_path / "log.parquet")
    assert history.round_s == 86400, "no finer than the log's own times"
    assert [history.of(n).tolist() for n in range(2)] == [[0, 5], [1]]


@pytest.mark.parametrize("nothing", ["", "NaN", "null", "NaT"])
def test_an_interval_without_an_end_lasts_until_the_logs(log: Any, nothing: str) -> None:
    text = f"client,start,end\n0,0,30\n1,20,{nothing}\n0,40,60\n"
    history = read_history(log(text), 10)
    assert [history.of(n).tolist() for n in range(2)] == [[0, 1, 2, 4, 5], [2, 3, 4, 5]]
    assert history.mends == {"intervals without an end, taken to last until the log's": 1}
    dated = text.replace("0,0,", "0,1970-01-01,").replace("1,20,", "1,1970-01-01 00:00:20,")
    dated = dated.replace(",30\n", ",1970-01-01T00:00:30Z\n").replace(
        "0,40,60", "0,1970-01-01 00:00:40,1970-01-01 00:01"
    )
    assert (read_history(log(dated), 10).dense(np.arange(2)) == history.dense(np.arange(2))).all()


spans = st.lists(
    st.tuples(st.integers(0, 3), st.integers(0, 60), st.integers(0, 30)), min_size=1, max_size=25
)


@given(spans, st.integers(1, 9))
def test_intervals_against_brute_force(spans: list[tuple[int, int, int]], round_s: int) -> None:
    from turnout.audit.sessions import Sessions, history_of_sessions

    client, start, length = np.array(spans).T
    if not length.any():
        return
    sessions = Sessions(client, start.astype(float), (start + length).astype(float))
    history = history_of_sessions(sessions, 4, None, float(round_s), {})
    real = [(c, s, s + n) for c, s, n in spans if n]
    first, last = min(s for _, s, _ in real), max(e for _, _, e in real)
    zero = 0 if first < last - first else first // round_s * round_s
    for n in range(4):
        there = [
            t
            for t in range(history.rounds)
            if any(c == n and s <= zero + t * round_s < e for c, s, e in real)
        ]
        assert history.of(n).tolist() == there
    assert history.listed is not None
    assert history.listed.tolist() == [n in client for n in range(4)]


def test_zones_are_brought_to_utc(log: Any) -> None:
    text = (
        "device,start,end\n"
        "b,2024-03-01T02:00:00+02:00,2024-03-01T01:00:00Z\n"
        "a,2024-03-01 01:00:00,2024-03-01T02:00:00Z\n"
        "a,2024-03-01T01:30:00Z,2024-03-01T03:00:00.000Z\n"
    )
    history = read_history(log(text), 1800)
    assert history.names == ["a", "b"]
    assert [history.of(n).tolist() for n in range(2)] == [[2, 3, 4, 5], [0, 1]]
    assert dict(history.mends) == {
        "times without a zone, read as UTC": 1,
        "times of other zones, brought to UTC": 1,
        "overlapping intervals merged": 1,
    }


def test_parquet_times(tmp_path: Path) -> None:
    start = pyarrow.array([0, 3_600_000_000], pyarrow.timestamp("us", "Europe/Paris"))
    end = pyarrow.array([1_800_000_000, 7_200_000_000], pyarrow.timestamp("us", "UTC"))
    table = pyarrow.table({"client": ["x", "y"], "start": start, "end": end})
    parquet.write_table(table, tmp_path / "log.parquet")
    history = read_history(tmp_path / "log.parquet", 900)
    assert [history.of(n).tolist() for n in range(2)] == [[0, 1], [4, 5, 6, 7]]


def test_milliseconds(log: Any) -> None:
    text = "client,start,end\n0,1700000000000,1700000060000\n1,1700000060000,1700000120000\n"
    history = read_history(log(text), 10)
    assert history.counts.tolist() == [6, 6]
    assert history.mends["columns of milliseconds, brought to seconds"] == 2


def test_events(log: Any) -> None:
    text = "client,time,state\n0,0,on\n0,30,OFF\n1,20,off\n0,40,joined\n0,50,on\n1,60,leave\n"
    history = read_history(log(text), 10)
    assert [history.of(n).tolist() for n in range(2)] == [[0, 1, 2, 4, 5], [0, 1]]
    assert history.mends["events that repeat a client's state"] == 2
    assert history.mends["clients there from the log's start"] == 1
    assert history.mends["clients there until the log's end"] == 1


def test_visits(log: Any) -> None:
    history = read_history(log("client\ttime\n0\t0\n0\t5\n1\t25\n0\t21\n"), 10)
    assert [history.of(n).tolist() for n in range(2)] == [[0, 2], [2]]


def test_flash(log: Any) -> None:
    lines = [
        "2020-01-29 00:00:00\tbattery_charged_on",
        "2020-01-29 00:00:00\tWIFI",
        "2020-01-29 00:10:00\tscreen_off",
        "2020-01-29 00:05:00\t80.0%",
        "2020-01-29 00:40:00\tscreen_on",
        "nonsense",
        "2020-01-29 00:50:00\tscreen_lock",
        "2020-01-29 01:00:00\t4G",
    ]
    table = {"a": {"model": "x", "messages": "\n".join(lines)}, "b": {"messages": ""}}
    history = read_history(log(json.dumps(table), "state_traces.json"), 600)
    # 00:10 to 00:40 and 00:50 to 01:00, from round 0 at 00:10
    assert history.of(0).tolist() == [0, 1, 2, 4]
    assert history.listed is not None
    assert history.listed.tolist() == [True, False]
    assert history.mends["messages that are no time and state"] == 1
    assert history.mends["messages out of order"] == 1


def pickled(folder: Path, value: Any) -> Path:
    path = folder / "client_behave_trace"
    path.write_bytes(pickle.dumps(value))
    return path


def test_fedscale(tmp_path: Path) -> None:
    entry = {"duration": 90, "finish_time": 200, "model": "m"}
    table = {7: {**entry, "active": [0, 100, 190], "inactive": [30, 120]}}
    table[9] = {**entry, "active": [50], "inactive": [40]}
    history = read_history(pickled(tmp_path, table), 10)
    assert history.names == ["7", "9"]
    assert [history.of(n).tolist() for n in range(2)] == [[0, 1, 2, 10, 11], []]
    assert history.mends["stretches without an end left out"] == 1
    assert history.mends["stretches that end before they start"] == 1


class Harmful:
    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return Path.touch, (self.path,)


def test_a_pickle_executes_nothing(tmp_path: Path) -> None:
    mark = tmp_path / "executed"
    with pytest.raises(InputError, match="a trace needs nothing run"):
        read_history(pickled(tmp_path, {1: Harmful(mark)}))
    assert not mark.exists()


REFUSED = {
    "round,client\n0,1\n# c\n\nq,2\n": r"round in .*, line 5, is 'q'",
    "round,client\n0,1\n# c\n\n3\n": r"line 5 of .* is '3'; it must be 2 values",
    "round,client,delivered\n0,1,1\n0,2,maybe\n": r"delivered in .*, line 3, is 'maybe'",
    "client,start,end\n1,3,2\n": r"end in .*, line 2, is '2'",
    "client,start,end\n1,0,9\n1,2024-01-01,9\n": r"start in .*, line 3, is '2024-01-01'",
    "client,start,end\n1,2024-01-01,2024-01-02\n1,2024-01-01,2024-13-02\n": r"line 3, is '2024-13",
    "client,time,state\n1,3,on\n1,4,perhaps\n": r"state in .*, line 3, is 'perhaps'",
    "round,client\n": "the number of entries in .* is 0",
    "": "is empty",
    "a,b\n1,2\n": "there must be client and round",
    "round,client,client\n1,2,3\n": "is 'round, client, client'; it must be ones with different",
    "round,client\n0.5,2\n": r"round in .*, line 2, is '0.5'",
    "client,start,end\n0,1,3\n0,NaN,3\n": r"start in .*, line 3, is 'NaN'",
    "client,start,end\n1,5,5\n": "the number of intervals that are not empty is 0",
    "round,client\n-1,3\n": "round in .*, line 2, is '-1'",
    "client,start,end\n1,0,inf\n": "end in .*, line 2, is 'inf'",
}


@pytest.mark.parametrize("text", REFUSED)
def test_refused_with_the_line(log: Any, text: str) -> None:
    with pytest.raises(InputError, match=REFUSED[text]):
        read_history(log(text))


def test_refused_as_a_whole(log: Any, tmp_path: Path) -> None:
    for path, match in (
        (tmp_path / "none.csv", "no such file"),
        (log("{", "bad.json"), "cannot be read as JSON"),
        (log("[]", "list.json"), "a table of devices"),
        (pickled(tmp_path, [1]), "a table of clients"),
        (log("x", "bad.parquet"), "cannot be read as Parquet"),
    ):
        with pytest.raises(InputError, match=match):
            read_history(path)
    with pytest.raises(InputError, match="clients is 1"):
        read_history(log("round,client\n0,a\n0,b\n"), clients=1)
    with pytest.raises(InputError, match="take longer rounds"):
        read_history(log("client,start,end\n0,0,1e9\n"), 1e-3)
