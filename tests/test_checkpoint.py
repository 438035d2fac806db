"""Checkpoints: what goes in comes out, and what is damaged is noticed and passed over."""

import errno
import json
import os
import random
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from turnout import checkpoint
from turnout.checkpoint import load, save
from turnout.errors import CheckpointError


@dataclass
class Inner:
    count: int
    values: torch.Tensor


def state(seed: int = 0) -> dict:
    draw = np.random.default_rng(seed)
    return {
        "x": torch.from_numpy(draw.normal(size=7)),
        "half": torch.from_numpy(draw.normal(size=(2, 3)).astype(np.float32)),
        "mask": draw.random(5) < 0.5,
        "counts": draw.integers(9, size=4).astype(np.int32),
        "scalar": np.float64(0.1),
        "nothing": None,
        "nan": float("nan"),
        "flag": True,
        "empty": {},
        "zero": np.array(3.5),
        "inner": Inner(3, torch.arange(4)),
    }


def same(a: object, b: object) -> None:
    if isinstance(a, Inner):
        a = {"count": a.count, "values": a.values}
    if isinstance(a, dict):
        assert isinstance(b, dict)
        assert a.keys() == b.keys()
        for key in a:
            same(a[key], b[key])
    elif isinstance(a, torch.Tensor):
        assert isinstance(b, torch.Tensor)
        assert a.dtype == b.dtype
        assert a.shape == b.shape
        assert a.numpy().tobytes() == b.numpy().tobytes()
    elif isinstance(a, np.ndarray):
        assert isinstance(b, np.ndarray)
        assert a.dtype == b.dtype
        assert a.shape == b.shape
        assert a.tobytes() == b.tobytes()
    else:
        np.testing.assert_equal(b, a)


def test_what_goes_in_comes_out(tmp_path: Path) -> None:
    save(tmp_path, 12, state(), notes={"position": 345})
    found = load(tmp_path)
    assert found is not None
    assert found.round == 12
    assert found.notes == {"position": 345}
    same(state(), found.tree)


def test_nothing_there_is_not_an_error(tmp_path: Path) -> None:
    assert load(tmp_path / "none") is None


def test_the_newest_counts_and_the_last_k_stay(tmp_path: Path) -> None:
    for round in (9, 10, 100, 1000):
        save(tmp_path, round, state(round), keep=2)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["round-000000100", "round-000001000"]
    found = load(tmp_path)
    assert found is not None
    assert found.round == 1000


def test_the_same_round_again_leaves_a_whole_checkpoint(tmp_path: Path) -> None:
    first = save(tmp_path, 5, state())
    inode = (first / "manifest.json").stat().st_ino
    assert save(tmp_path, 5, state()) == first
    assert (first / "manifest.json").stat().st_ino == inode
    (first / "state.safetensors").write_bytes(b"")
    save(tmp_path, 5, state())
    found = load(tmp_path)
    assert found is not None
    same(state(), found.tree)


def damage(path: Path, how: str) -> None:
    content = path.read_bytes()
    if how == "missing":
        path.unlink()
    elif how == "truncated":
        path.write_bytes(content[: len(content) // 2])
    else:
        flipped = bytearray(content)
        flipped[len(content) // 2] ^= 4
        path.write_bytes(bytes(flipped))


@pytest.mark.parametrize("how", ["missing", "truncated", "flipped"])
@pytest.mark.parametrize(
    "file", ["manifest.json", "state.safetensors", "state.table.1.safetensors"]
)
def test_damage_is_said_and_the_one_before_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str, file: str
) -> None:
    monkeypatch.setattr(checkpoint, "BLOCK_BYTES", 64)
    table = torch.arange(32.0).reshape(8, 4)
    counts = np.arange(8)
    save(tmp_path, 1, {"table": table}, delivered=counts, tables=["state.table"])
    newest = save(tmp_path, 2, {"table": table + 1}, delivered=counts + 1, tables=["state.table"])
    damage(newest / file, how)
    said: list[str] = []
    found = load(tmp_path, said.append)
    assert found is not None
    assert found.round == 1
    same({"table": table}, found.tree)
    assert len(said) == 1
    assert "round-000000002" in said[0]
    assert file in said[0]


def test_all_damaged_is_one_sentence_and_touches_nothing(tmp_path: Path) -> None:
    for round in (1, 2):
        damage(save(tmp_path, round, state()) / "state.safetensors", "flipped")
    before = {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()}
    with pytest.raises(CheckpointError, match=r"every checkpoint in .* is damaged"):
        load(tmp_path)
    assert before == {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()}


def test_blocks_whose_clients_stayed_away_are_linked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoint, "BLOCK_BYTES", 64)
    table, counts = torch.zeros(12, 4), np.zeros(12, dtype=np.int32)  # three blocks of four rows
    first = save(tmp_path, 1, {"table": table}, delivered=counts, tables=["state.table"])
    table[5], counts[5] = 7.0, 1
    second = save(tmp_path, 2, {"table": table}, delivered=counts, tables=["state.table"])
    linked = [
        (first / f).samefile(second / f) for f in (f"state.table.{b}.safetensors" for b in range(3))
    ]
    assert linked == [True, False, True]
    found = load(tmp_path)
    assert found is not None
    same({"table": table}, found.tree)


def test_a_full_disk_leaves_the_last_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save(tmp_path, 1, state(1))

    def full(handle: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as broken:
        broken.setattr(os, "fsync", full)
        with pytest.raises(
            CheckpointError, match="No space left on device; the last one is intact"
        ):
            save(tmp_path, 2, state(2))
    assert [p.name for p in tmp_path.iterdir()] == ["round-000000001"]
    found = load(tmp_path)
    assert found is not None
    same(state(1), found.tree)
    save(tmp_path, 2, state(2))  # with room again it goes on
    found = load(tmp_path)
    assert found is not None
    assert found.round == 2


def test_a_writer_that_was_killed_leaves_nothing_that_counts(tmp_path: Path) -> None:
    whole = save(tmp_path, 1, state())
    draft = tmp_path / ".writing-abc"
    draft.mkdir()
    (draft / "manifest.json").write_bytes((whole / "manifest.json").read_bytes()[:50])
    found = load(tmp_path)
    assert found is not None
    assert found.round == 1
    save(tmp_path, 2, state())
    assert not draft.exists()


def test_a_newer_format_is_refused_by_name(tmp_path: Path) -> None:
    path = save(tmp_path, 1, state()) / "manifest.json"
    body = json.loads(path.read_text())["body"] | {"format": 99}
    path.write_text(json.dumps({"checksum": checkpoint._seal(body), "body": body}))
    said: list[str] = []
    with pytest.raises(CheckpointError):
        load(tmp_path, said.append)
    assert "format is 99; this version reads 1" in said[0]


def test_what_it_cannot_hold_is_named(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match=r"state\.a\.b is a set"):
        save(tmp_path, 1, {"a": {"b": {1}}})


@settings(max_examples=100)
@given(st.randoms(use_true_random=False))
def test_any_mutilation_is_noticed(
    tmp_path_factory: pytest.TempPathFactory, dice: random.Random
) -> None:
    """Whatever bytes change in whatever file, the state that comes back is never a wrong one."""
    folder = tmp_path_factory.mktemp("fuzz")
    newest = save(folder, 1, {"x": torch.arange(6.0)}, notes={"a": 1})
    victim = newest / dice.choice(["manifest.json", "state.safetensors"])
    content = bytearray(victim.read_bytes())
    original = bytes(content)
    for _ in range(dice.randint(1, 4)):
        place = dice.randrange(len(content))
        match dice.choice(["set", "cut", "insert"]):
            case "set":
                content[place] = dice.randrange(256)
            case "cut":
                del content[place:]
            case "insert":
                content.insert(place, dice.randrange(256))
        if not content:
            break
    victim.write_bytes(bytes(content))
    try:
        found = load(folder)
    except CheckpointError:
        return
    assert found is not None
    # Only what means the same may pass: white space in the manifest, or no change at all.
    same({"x": torch.arange(6.0)}, found.tree)
    assert found.notes == {"a": 1}
    if victim.name != "manifest.json":
        assert bytes(content) == original
