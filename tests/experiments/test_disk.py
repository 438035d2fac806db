"""A disk that is full, or fails: a sentence, intact checkpoints, and with room again it goes on."""

import errno
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.experiments.test_resume import config, exact, text

from turnout import checkpoint
from turnout.cli import status
from turnout.errors import WriteError
from turnout.experiments.run import run_experiment

SIZE = 4 << 20
SAVING = ("run.rounds=8", "run.checkpoint_seconds=0", "run.plots=false")


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of a few megabytes."""
    place = tmp_path / "disk"
    place.mkdir()
    if shutil.which("mount") is None or not hasattr(os, "geteuid") or os.geteuid() != 0:
        pytest.skip("only root on Linux can mount a small file system")
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "tmpfs", str(place)],
        capture_output=True,
        check=False,
    )
    if made.returncode:
        pytest.skip(f"no small file system can be mounted: {made.stderr.decode().strip()}")
    try:
        yield place
    finally:
        subprocess.run(["umount", str(place)], check=True)


def fill(folder: Path) -> Path:
    """Take all the room that is left."""
    path = folder / "filler"
    with open(path, "wb", buffering=0) as file:
        while True:
            try:
                file.write(bytes(1 << 12))
            except OSError as error:
                if error.errno != errno.ENOSPC:
                    raise
                return path


@pytest.mark.parametrize("round", [0, 3, 7])
def test_a_disk_that_runs_full_in_mid_run(small_disk: Path, tmp_path: Path, round: int) -> None:
    whole, out = config(*SAVING), small_disk / "out"
    filler: list[Path] = []

    def watch(cell: object, happened: object, metrics: object) -> None:
        if getattr(happened, "round") == round:  # noqa: B009
            filler.append(fill(small_disk))

    with pytest.raises(WriteError) as caught:
        run_experiment(whole, out, watch)  # type: ignore[arg-type]
    said = str(caught.value)
    assert "No space left on device" in said
    assert (
        f"with that mended this goes on: turnout run {out / 'config.toml'} --out {out} --resume"
        in said
    )
    assert "\n" not in said
    found = checkpoint.load(next(out.rglob("checkpoints")), pytest.fail)
    assert found is not None
    with pytest.raises(WriteError, match="No space left"):
        run_experiment(whole, out, resume=True)  # There is still no room.
    again = checkpoint.load(next(out.rglob("checkpoints")), pytest.fail)
    assert again is not None
    assert again.round == found.round
    filler[0].unlink()
    run_experiment(whole, out, resume=True)
    run_experiment(whole, tmp_path / "whole")
    assert exact(out) == exact(tmp_path / "whole")


def test_the_command_says_it_in_a_line(
    small_disk: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "experiment.toml"
    file.write_text(text("mifa").replace("rounds = 30", "rounds = 3000"))
    fill(small_disk).unlink()
    # So little room that one checkpoint fits, but not the next one beside it.
    with open(small_disk / "filler", "wb") as filler:
        filler.write(bytes(SIZE - (96 << 10)))
    assert status(["run", str(file), "--out", str(small_disk / "out"), "--quiet"]) == 1
    said = capsys.readouterr()
    assert said.err.count("\n") == 1
    assert said.err.startswith("turnout: ")
    assert "No space left on device" in said.err
    assert "--resume" in said.err


def writes(monkeypatch: pytest.MonkeyPatch, fails: int | None) -> list[int]:
    """From now on the write to the disk with this number fails, in whichever file it is."""
    count, real = [0], os.fsync

    def fsync(handle: int) -> None:
        count[0] += 1
        if count[0] == fails:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real(handle)

    monkeypatch.setattr(os, "fsync", fsync)
    return count


def any_write_may_fail(monkeypatch: pytest.MonkeyPatch, folder: Path, which: list[int]) -> None:
    whole = config(*SAVING, "run.rounds=5")
    for number in which:
        out = folder / str(number)
        with monkeypatch.context() as broken:
            writes(broken, number)
            with pytest.raises((WriteError, OSError), match="No space left"):
                run_experiment(whole, out)
        run_experiment(whole, out, resume=True)
        assert exact(out) == exact(folder / "whole"), f"write {number}"
        assert not list(out.rglob(".writing*"))


def all_writes(monkeypatch: pytest.MonkeyPatch, folder: Path) -> int:
    with monkeypatch.context() as counting:
        count = writes(counting, None)
        run_experiment(config(*SAVING, "run.rounds=5"), folder / "whole")
    assert count[0] > 30
    return count[0]


def test_a_write_that_fails_stops_the_run_and_with_room_again_it_goes_on(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    last = all_writes(monkeypatch, tmp_path)
    any_write_may_fail(monkeypatch, tmp_path, [1, 2, 9, last])


@pytest.mark.slow
def test_each_write_of_a_run_may_fail(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    last = all_writes(monkeypatch, tmp_path)
    any_write_may_fail(monkeypatch, tmp_path, list(range(1, last + 1)))
