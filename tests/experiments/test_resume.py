"""Stopped or damaged and resumed, a run ends as if nothing had happened, to the byte."""

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from tests.experiments.waiting import wait_for_checkpoints

from turnout import checkpoint
from turnout.algorithms import RECIPES
from turnout.cli import status
from turnout.errors import InputError
from turnout.experiments.config import Config
from turnout.experiments.interrupt import Asked, Interrupted
from turnout.experiments.read import change, configure, parse
from turnout.experiments.results import read_results
from turnout.experiments.run import run_experiment

SMALL = """
[run]
rounds = 30
seeds = [0]
evaluate_every = 3
checkpoint_seconds = 0
plots = false
engine = "{engine}"
[data]
name = "digits"
partition = {{ name = "dirichlet", clients = 12, alpha = 0.3 }}
auxiliary = {{ size = 40 }}
[participation]
process = "markov"
rates = {{ alpha = 0.1, mean = 0.4, floor = 0.1 }}
lost = 0.1
[[algorithm]]
name = "{name}"
"""

EXTRA = {
    "amplified": 'period = 4\nfactor = 1.5\ninner = { name = "mifa", memory = "client" }\n',
    "safari": 'q = 0.6\ninner = { name = "fedau", cutoff = 5 }\n',
}

EXACT = (
    "metrics.jsonl",
    "model.safetensors",
    "clients.csv",
    "classes.csv",
    "participation.parquet",
)


def text(name: str, engine: str = "auto") -> str:
    return SMALL.format(name=name, engine=engine) + EXTRA.get(name, "")


def config(*changes: str, name: str = "fedau") -> Config:
    return configure(change(parse(text(name)), changes))


def exact(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.name in EXACT
    }


def stopping_at(round: int, asked: Asked) -> object:
    def watch(cell: object, happened: object, metrics: object) -> None:
        asked.stop = getattr(happened, "round") >= round  # noqa: B009

    return watch


@pytest.mark.parametrize("name", sorted(RECIPES))
def test_stopped_and_resumed_is_the_same_to_the_byte(tmp_path: Path, name: str) -> None:
    whole, stopped, asked = config("run.rounds=14", name=name), tmp_path / "stopped", Asked()
    with pytest.raises(Interrupted, match=r"seed 0, round 8; .* --resume"):
        run_experiment(whole, stopped, stopping_at(7, asked), asked)  # type: ignore[arg-type]
    assert read_results(stopped).cells[0].status == "running"
    run_experiment(whole, stopped, resume=True)
    run_experiment(whole, tmp_path / "whole")
    assert exact(stopped) == exact(tmp_path / "whole")
    assert not list(stopped.rglob("round-*"))  # what is done needs no checkpoint


def test_metrics_written_after_the_checkpoint_are_written_again_once(tmp_path: Path) -> None:
    asked = Asked()
    with pytest.raises(Interrupted):
        run_experiment(config(), tmp_path, stopping_at(9, asked), asked)  # type: ignore[arg-type]
    (metrics,) = tmp_path.rglob("metrics.jsonl")
    with open(metrics, "a") as file:
        file.write('{"round": 12, "test_acc')  # killed in mid-line
    run_experiment(config(), tmp_path, resume=True)
    rounds = read_results(tmp_path).cells[0].curve("test_loss")[0]
    assert rounds == list(range(3, 31, 3))


def test_a_damaged_checkpoint_is_said_and_the_one_before_is_used(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    asked, out = Asked(), tmp_path / "out"
    with pytest.raises(Interrupted):
        run_experiment(config(), out, stopping_at(9, asked), asked)  # type: ignore[arg-type]
    newest = sorted(out.rglob("round-*"))[-1] / "state.safetensors"
    content = bytearray(newest.read_bytes())
    content[random.Random(0).randrange(len(content))] ^= 1
    newest.write_bytes(bytes(content))
    run_experiment(config(), out, resume=True)
    assert "checkpoint round-000000010 is damaged" in caplog.text
    run_experiment(config(), tmp_path / "whole")
    assert exact(out) == exact(tmp_path / "whole")


def test_another_experiment_is_refused_with_what_differs(tmp_path: Path) -> None:
    run_experiment(config("run.rounds=3"), tmp_path)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    with pytest.raises(InputError, match=r"run\.rounds was 3 and is 4"):
        run_experiment(config("run.rounds=4"), tmp_path, resume=True)
    with pytest.raises(InputError, match=r"algorithm\.0\.cutoff was 50 and is 7"):
        run_experiment(config("run.rounds=3", "algorithm.0.cutoff=7"), tmp_path, resume=True)
    after = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert after == before


def test_what_is_not_a_run_directory_is_refused(tmp_path: Path) -> None:
    (tmp_path / "letters.txt").write_text("dear")
    with pytest.raises(InputError, match=r"cannot be resumed"):
        run_experiment(config(), tmp_path, resume=True)
    with pytest.raises(InputError, match="--out is missing"):
        run_experiment(config(), None, resume=True)


def test_resume_begins_what_has_not_begun(tmp_path: Path) -> None:
    outcome = run_experiment(config("run.rounds=2"), tmp_path / "new", resume=True)
    assert outcome.results.cells[0].status == "done"


def test_ctrl_c_keeps_all_and_says_how_to_go_on(tmp_path: Path) -> None:
    file, out = tmp_path / "experiment.toml", tmp_path / "out"
    file.write_text(text("fedau").replace("rounds = 30", "rounds = 100000"))
    command = [sys.executable, "-m", "turnout", "run", str(file), "--out", str(out)]
    process = subprocess.Popen(
        command, stderr=subprocess.PIPE, text=True, env={**os.environ, "COLUMNS": "500"}
    )
    try:
        wait_for_checkpoints(process, out)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 130
    assert f"turnout run {out / 'config.toml'} --out {out} --resume" in said
    assert "Traceback" not in said
    assert list(out.rglob("round-*"))


def test_a_second_ctrl_c_stops_at_once_with_the_last_checkpoint_intact(tmp_path: Path) -> None:
    file, out = tmp_path / "experiment.toml", tmp_path / "out"
    # A long round: whoever waits for its end has not stopped at once.
    file.write_text(text("fedau") + "steps = 300000\n")
    command = [sys.executable, "-m", "turnout", "run", str(file), "--out", str(out)]
    process = subprocess.Popen(
        command, stderr=subprocess.PIPE, text=True, env={**os.environ, "COLUMNS": "500"}
    )
    try:
        wait_for_checkpoints(process, out)
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        # Two that come before Python has looked at the first are one to it: on a busy machine a single
        # operation may take half a second.
        time.sleep(2)
        assert process.poll() is None
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 130
    assert "stopped at once, in mid-round; the last checkpoint is kept, and this goes on: " in said
    assert f"turnout run {out / 'config.toml'} --out {out} --resume" in said
    assert "Traceback" not in said
    found = checkpoint.load(next(out.rglob("checkpoints")), pytest.fail)
    assert found is not None
    assert found.round == 0


@pytest.mark.parametrize("how", ["cut", "flipped", "gone"])
def test_all_checkpoints_damaged_is_a_sentence_and_touches_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], how: str
) -> None:
    asked, file, out = Asked(), tmp_path / "experiment.toml", tmp_path / "out"
    file.write_text(text("fedau"))
    with pytest.raises(Interrupted):
        run_experiment(config(), out, stopping_at(9, asked), asked)  # type: ignore[arg-type]
    for victim in out.rglob("state.safetensors"):
        content = victim.read_bytes()
        if how == "gone":
            victim.unlink()
        elif how == "cut":
            victim.write_bytes(content[:-1])
        else:
            victim.write_bytes(content[:40] + bytes([content[40] ^ 1]) + content[41:])
    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    again = ["run", str(out / "config.toml"), "--out", str(out), "--resume", "--quiet"]
    assert status(again) == 1
    said = capsys.readouterr().err
    assert "every checkpoint in " in said
    assert "files are left as they are" in said
    assert "Traceback" not in said
    after = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    assert {**after, out / ".lock": b""} == {**before, out / ".lock": b""}


def test_a_run_goes_on_with_the_threads_that_it_began_with(tmp_path: Path) -> None:
    """Also in a cell that had not begun when it was stopped."""
    two = "algorithm=[{name='fedau'}, {name='fedvarp'}]"
    asked, threads = Asked(), torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        run_experiment(config(two, "run.rounds=6"), tmp_path / "whole")
        torch.set_num_threads(2)
        with pytest.raises(Interrupted):
            run_experiment(
                config(two, "run.rounds=6"),
                tmp_path / "cut",
                stopping_at(2, asked),  # type: ignore[arg-type]
                asked,
            )
        torch.set_num_threads(1)
        run_experiment(config(two, "run.rounds=6"), tmp_path / "cut", resume=True)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(threads)
    assert exact(tmp_path / "cut") == exact(tmp_path / "whole")


def test_a_status_that_cannot_be_read_is_none(tmp_path: Path) -> None:
    run_experiment(config("run.rounds=4"), tmp_path / "whole")
    shutil.copytree(tmp_path / "whole", tmp_path / "bent")
    (path,) = (tmp_path / "bent").rglob("status.json")
    path.write_bytes(path.read_bytes()[:30])
    run_experiment(config("run.rounds=4"), tmp_path / "bent", resume=True)
    assert exact(tmp_path / "bent") == exact(tmp_path / "whole")
