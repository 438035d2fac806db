"""Traces, masks and logs of participation: whatever is in the file, it is read or refused."""

import json
import pickle
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example
from hypothesis import strategies as some
from tests.fuzz.bend import answered, binary, few_or_a_thousand, text, tried

from turnout.audit.read import read_history
from turnout.cli import status
from turnout.participation import Participation, bernoulli, export, given, lossy, record, trace

TRACE = """client,available_from_s,available_until_s
0,0,100
0,200,300.5
1,50,400
# a remark
2,0,10
2,10,86400
"""
PAIRS = "# rounds=6 clients=4\nround,client,delivered\n0,1,1\n0,2,0\n1,1,1\n3,0,1\n5,3,1\n"
EVENTS = """client,time,state
a,2024-01-01T00:00:00Z,on
a,2024-01-01T02:00:00Z,off
b,2024-01-01T01:00:00Z,1
"""
VISITS = "device;ts\nx;0\ny;3600\nx;7200.5\n"
FLASH = json.dumps(
    {
        "7": {
            "messages": "2020-01-29 00:00:00\tbattery_charged_on\n2020-01-29 00:00:00\tWIFI\n"
            "2020-01-29 00:10:00\tscreen_off\n2020-01-29 00:40:00\tscreen_on\n"
        }
    }
)
FEDSCALE = pickle.dumps(
    {7: {"duration": 90, "finish_time": 200, "active": [0, 100, 190], "inactive": [30, 120]}},
    protocol=4,
)


def files(ending: str) -> bytes:
    log = record(lossy(bernoulli(0.4, clients=5), 0.3), 12)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"log.{ending}"
        export(log, path)
        return path.read_bytes()


def of_bytes(content: bytes, ending: str, use: Callable[[Path], object]) -> bool:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"log.{ending}"
        path.write_bytes(content)
        return answered(lambda: use(path))


def played(process: Participation) -> None:
    state = process.init()
    for round in range(3):
        _, state = process.step(state, round)


GOOD = {"csv": PAIRS.encode(), "npy": files("npy"), "parquet": files("parquet")}
OWN: dict[str, some.SearchStrategy[bytes]] = {
    "csv": text(PAIRS),
    "npy": binary(GOOD["npy"]),
    "parquet": binary(GOOD["parquet"]),
}


@few_or_a_thousand
def test_traces(inputs: int) -> None:
    taken = []

    @tried(inputs, content=text(TRACE), round_s=some.sampled_from([1.0, 60.0, 1e-3, 1e6]))
    def check(content: bytes, round_s: float) -> None:
        taken.append(of_bytes(content, "csv", lambda path: played(trace(path, round_s))))

    assert set(taken) == {True, False}


@few_or_a_thousand
@pytest.mark.parametrize("ending", sorted(OWN))
def test_masks(inputs: int, ending: str) -> None:
    taken = []

    @tried(inputs, content=OWN[ending])
    @example(content=GOOD[ending])  # of a binary file's bent copies but few can be read
    def check(content: bytes) -> None:
        use = lambda path: played(given(path, repeat=True))  # noqa: E731
        taken.append(of_bytes(content, ending, use))

    assert set(taken) == {True, False}


AUDITED: dict[str, tuple[str, some.SearchStrategy[bytes]]] = {
    "pairs": ("csv", text(PAIRS)),
    "intervals": ("csv", text(TRACE)),
    "events": ("csv", text(EVENTS)),
    "visits": ("csv", text(VISITS)),
    "mask": ("npy", OWN["npy"]),
    "parquet": ("parquet", OWN["parquet"]),
    "flash": ("json", text(FLASH)),
    "fedscale": ("pkl", binary(FEDSCALE)),
}


@few_or_a_thousand
@pytest.mark.parametrize("form", sorted(AUDITED))
def test_logs_to_audit(inputs: int, form: str) -> None:
    ending, contents = AUDITED[form]

    @tried(inputs, content=contents)
    def check(content: bytes) -> None:
        of_bytes(content, ending, read_history)


@pytest.mark.parametrize("inputs", [5, pytest.param(100, marks=pytest.mark.slow)])
def test_the_audit_itself(inputs: int, capsys: pytest.CaptureFixture[str]) -> None:
    """The whole command, whose folder is written whole or not at all."""
    anything = some.sampled_from(sorted(AUDITED)).flatmap(
        lambda form: some.tuples(some.just(AUDITED[form][0]), AUDITED[form][1])
    )

    @tried(inputs, log=anything)
    def check(log: tuple[str, bytes]) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path, out = Path(folder) / f"log.{log[0]}", Path(folder) / "out"
            path.write_bytes(log[1])
            code = status(["audit", str(path), "--out", str(out)])
            said = capsys.readouterr()
            if code == 0:
                assert (out / "audit.json").exists()
                return
            assert code == 2
            assert said.err.startswith("turnout: ")
            assert said.err.count("\n") == 1
            assert not out.exists()


def test_what_the_files_are_bent_from_is_good(tmp_path: Path) -> None:
    good: dict[str, Any] = {"pairs": PAIRS, "intervals": TRACE, "events": EVENTS, "visits": VISITS}
    good |= {
        "flash": FLASH,
        "fedscale": FEDSCALE,
        "mask": files("npy"),
        "parquet": files("parquet"),
    }
    assert good.keys() == AUDITED.keys()
    for form, content in good.items():
        path = tmp_path / f"{form}.{AUDITED[form][0]}"
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        assert read_history(path).clients >= 1
    assert isinstance(trace(tmp_path / "intervals.csv", 60.0).rates, np.ndarray)
