"""Logs to files and back."""

from pathlib import Path

import numpy as np
import pyarrow
import pytest
from hypothesis import given as drawn
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from pyarrow import parquet
from tests.participation.examples import EVERY

from turnout.errors import InputError
from turnout.participation import (
    Log,
    bernoulli,
    export,
    from_mask,
    given,
    load,
    lossy,
    record,
    sized,
)

FORMS = ["npy", "csv", "parquet"]


def equal(one: Log, other: Log) -> bool:
    return (one.rounds, one.clients) == (other.rounds, other.clients) and all(
        getattr(one, name).tolist() == getattr(other, name).tolist()
        for name in ("round", "client", "delivered")
    )


@pytest.mark.parametrize("form", FORMS)
@settings(max_examples=40)
@drawn(mask=arrays(bool, array_shapes(min_dims=2, max_dims=2, max_side=8)))
def test_a_mask_survives(
    tmp_path_factory: pytest.TempPathFactory, form: str, mask: np.ndarray
) -> None:
    """Also with empty rounds at the end, clients that never come, and nobody at all."""
    path = tmp_path_factory.mktemp("export") / f"log.{form}"
    export(from_mask(mask), path)
    assert equal(load(path), from_mask(mask))
    assert np.array_equal(load(path).mask(), mask)


@pytest.mark.parametrize("form", ["csv", "parquet"])
@settings(max_examples=40)
@drawn(
    code=arrays(int, array_shapes(min_dims=2, max_dims=2, max_side=8), elements=st.integers(0, 2))
)
def test_lost_updates_survive_in_the_sparse_forms(
    tmp_path_factory: pytest.TempPathFactory, form: str, code: np.ndarray
) -> None:
    round, client = np.nonzero(code)
    log = Log(*code.shape, round, client, code[round, client] == 2)
    path = tmp_path_factory.mktemp("export") / f"log.{form}"
    export(log, path)
    assert equal(load(path), log)


def test_a_mask_file_forgets_who_was_asked_in_vain(tmp_path: Path) -> None:
    log = record(lossy(bernoulli(0.5, 20), 0.5), 10)
    export(log, tmp_path / "mask.npy")
    assert np.array_equal(load(tmp_path / "mask.npy").mask(cohort=True), log.mask())
    assert np.load(tmp_path / "mask.npy").dtype == bool


@pytest.mark.parametrize("form", ["csv", "parquet"])
@pytest.mark.parametrize("name", EVERY)
def test_every_process_replays_from_its_export(tmp_path: Path, name: str, form: str) -> None:
    process = EVERY[name](tmp_path, 4)
    export(record(process, 30), tmp_path / f"log.{form}")
    replayed = given(tmp_path / f"log.{form}")
    assert np.array_equal(replayed.mask(30), process.mask(30))
    assert np.array_equal(replayed.mask(30, cohort=True), process.mask(30, cohort=True))


def test_the_csv_is_plain(tmp_path: Path) -> None:
    export(from_mask([[0, 1], [1, 1], [0, 0]]), tmp_path / "log.csv")
    assert (
        tmp_path / "log.csv"
    ).read_text() == "# rounds=3 clients=2\nround,client\n0,1\n1,0\n1,1\n"


def test_logs_of_others(tmp_path: Path) -> None:
    """Rows in any order, other columns, no word on how many there are."""
    (tmp_path / "log.csv").write_text("client,name,round,delivered\n4,a,1,1\n0,b,1,0\n2,c,0,1\n")
    table = pyarrow.table(
        {
            "round": pyarrow.array([1, 1, 0], pyarrow.int32()),
            "client": pyarrow.array([4, 0, 2], pyarrow.uint8()),
            "delivered": [True, False, True],
            "name": ["a", "b", "c"],
        }
    )
    parquet.write_table(table, tmp_path / "log.parquet")
    for form in ("csv", "parquet"):
        log = load(tmp_path / f"log.{form}")
        assert (log.rounds, log.clients) == (2, 5)
        assert log.mask(cohort=True).astype(int).tolist() == [[0, 0, 1, 0, 0], [1, 0, 0, 0, 1]]
        assert log.mask().astype(int).tolist() == [[0, 0, 1, 0, 0], [0, 0, 0, 0, 1]]
        assert sized(log, rounds=9, clients=6).mask().shape == (9, 6)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "round,client\n0,1\n0,1\n",
            "client in {}, line 3, is 1; it must be another than in line 2",
        ),
        ("round,client\n", "the number of rows in {} is 0; it must be at least 1"),
        ("round,who\n0,1\n", "the header of {} is 'round, who'; it must be one with a column 'cl"),
        ("round,client\n0,x\n", "client in {}, line 2, is 'x'; it must be a finite number"),
        ("round,client\n0.5,1\n", "round in {}, line 2, is 0.5; it must be a round's number"),
        ("round,client\n-1,1\n", "round in {}, line 2, is -1; it must be a round's number"),
        ("round,client,delivered\n0,1,2\n", "delivered in {}, line 2, is 2; it must be 1 (it ar"),
        ("# rounds=2\nround,client\n5,1\n", "rounds noted in {} is '2'; it must be a whole num"),
        ("# clients=x\nround,client\n5,1\n", "clients noted in {} is 'x'; it must be a whole n"),
    ],
)
def test_bad_csv(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "log.csv"
    path.write_text(text)
    with pytest.raises(InputError) as error:
        load(path)
    assert message.format(path) in str(error.value)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"round": [0]}, "the columns of {} is 'round'; it must be ones with a column 'client'"),
        ({"round": ["a"], "client": [0]}, "the type of round in {} is 'string'; it must be a ty"),
        ({"round": [0.0], "client": [0]}, "the type of round in {} is 'double'; it must be a ty"),
        ({"round": [0, None], "client": [0, 1]}, "round in {}, row 2, is nan; it must be a rou"),
        ({"round": [0, 0], "client": [3, 3]}, "client in {}, row 2, is 3; it must be another t"),
    ],
)
def test_bad_parquet(tmp_path: Path, columns: dict[str, list[object]], message: str) -> None:
    path = tmp_path / "log.parquet"
    parquet.write_table(pyarrow.table(columns), path)
    with pytest.raises(InputError) as error:
        load(path)
    assert message.format(path) in str(error.value)


@pytest.mark.parametrize("form", FORMS)
def test_files_that_cannot_be_read_or_written(tmp_path: Path, form: str) -> None:
    with pytest.raises(InputError, match="cannot be read as"):
        load(tmp_path / f"no.{form}")
    (tmp_path / f"junk.{form}").write_bytes(b"\xff\xfe junk")
    with pytest.raises(InputError, match="cannot be read as"):
        load(tmp_path / f"junk.{form}")
    with pytest.raises(InputError, match="cannot be written"):
        export(from_mask([[1]]), tmp_path / "no" / f"log.{form}")


def test_pickles_are_not_opened(tmp_path: Path) -> None:
    np.save(tmp_path / "mask.npy", np.array([[{}]], dtype=object), allow_pickle=True)
    with pytest.raises(InputError, match=r"cannot be read as \.npy"):
        load(tmp_path / "mask.npy")


def test_unknown_endings(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"ending of the file '\.cvs' is not known; did you mean"):
        export(from_mask([[1]]), tmp_path / "log.cvs")
    with pytest.raises(InputError, match=r"known: \.csv, \.npy, \.parquet"):
        load(tmp_path / "log.json")


@pytest.mark.parametrize(
    ("round", "client", "message"),
    [
        ([0, 3], [0, 0], "a round of the log is 3; it must be from 0 to 2"),
        ([0, 1], [0, -1], "a client of the log is -1; it must be from 0 to 1"),
        ([1, 0], [0, 0], "the order of the log is 'another'; it must be sorted by round and"),
        ([0, 0], [1, 1], "the order of the log is 'another'; it must be sorted by round and"),
    ],
)
def test_logs_made_by_hand_are_checked(round: list[int], client: list[int], message: str) -> None:
    with pytest.raises(InputError) as error:
        Log(3, 2, np.array(round), np.array(client), np.ones(2, dtype=bool))
    assert message in str(error.value)
