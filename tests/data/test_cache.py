"""Decoded arrays on disk: asked once, kept whole, never trusted when damaged."""

from pathlib import Path

import numpy as np
import pytest

from turnout.data.cache import Arrays, cache_folder, remembered


class Maker:
    def __init__(self) -> None:
        self.calls = 0

    def __call__(self) -> Arrays:
        self.calls += 1
        return {"inputs": np.arange(12).reshape(3, 4), "labels": np.array(["a", "bb", "c"])}


def test_the_second_time_is_read_and_not_made() -> None:
    maker = Maker()
    first = remembered({"k": 1}, maker)
    second = remembered({"k": 1}, maker)
    assert maker.calls == 1
    assert isinstance(second["inputs"], np.memmap)
    for name in first:
        assert np.array_equal(first[name], second[name])
    remembered({"k": 2}, maker)
    assert maker.calls == 2


def test_writing_to_the_arrays_does_not_reach_the_files() -> None:
    maker = Maker()
    remembered("k", maker)
    remembered("k", maker)["inputs"][:] = -1
    assert remembered("k", maker)["inputs"].min() == 0


@pytest.mark.parametrize("damage", ["cut", "gone", "empty list"])
def test_a_damaged_entry_is_made_anew(damage) -> None:
    maker = Maker()
    remembered("k", maker)
    [entry] = cache_folder().iterdir()
    if damage == "cut":
        file = entry / "inputs.npy"
        file.write_bytes(file.read_bytes()[:-16])
    elif damage == "gone":
        (entry / "labels.npy").unlink()
    else:
        (entry / "names.json").write_text("{")
    assert np.array_equal(remembered("k", maker)["inputs"], maker()["inputs"])
    assert maker.calls == 3  # at first, after the damage, and just above
    remembered("k", maker)
    assert maker.calls == 3
    assert list(cache_folder().iterdir()) == [entry]  # no drafts left


def test_a_cache_that_cannot_be_written_only_warns(tmp_path, monkeypatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("TURNOUT_CACHE", str(tmp_path / "file" / "below"))
    with pytest.warns(UserWarning, match="TURNOUT_CACHE names a folder that can be written"):
        assert remembered("k", Maker())["labels"].tolist() == ["a", "bb", "c"]


def test_a_failing_maker_leaves_nothing_behind() -> None:
    def fail() -> Arrays:
        raise RuntimeError("no")

    with pytest.raises(RuntimeError):
        remembered("k", fail)
    assert not cache_folder().exists()


def test_where_it_is(monkeypatch) -> None:
    monkeypatch.delenv("TURNOUT_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere")
    assert cache_folder() == Path("/somewhere/turnout")
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache_folder() == Path.home() / ".cache" / "turnout"
