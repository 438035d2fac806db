"""Trackers are told what metrics.jsonl has, for real; none of them can end a run."""

import json
import logging
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
from tests.experiments.worlds import file, small

from turnout.errors import InputError
from turnout.experiments.interrupt import Asked, Interrupted
from turnout.experiments.results import read_cell
from turnout.experiments.run import run_experiment
from turnout.tracking import TRACKERS, About, follow
from turnout.tracking.contract import Kind, Scalars, Tracker
from turnout.tracking.follow import scalars

CELL = Path("cells/fedau/seed-1")
CHANGES = ["run.checkpoint_seconds=0", "run.evaluate_every=1"]


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("MLFLOW_TRACKING_URI", "MLFLOW_ALLOW_FILE_STORE", "WANDB_MODE"):
        monkeypatch.delenv(name, raising=False)


def told(folder: Path) -> dict[str, list[tuple[int, float]]]:
    """What metrics.jsonl has, by the names that trackers use."""
    found: dict[str, list[tuple[int, float]]] = {}
    for metrics in read_cell(folder).metrics:
        for name, value in scalars(metrics).items():
            found.setdefault(name, []).append((metrics["round"], value))
    return found


def interrupted_and_resumed(track: str, out: Path) -> None:
    """Stopped in the midst of the last cell, then resumed: no round is missing or there twice."""
    asked = Asked()

    def watch(place, happened, metrics) -> None:
        asked.stop = place.folder == CELL and happened.round == 2

    config = small(f"run.track={track}", *CHANGES)
    with pytest.raises(Interrupted):
        run_experiment(config, out, watch, asked)
    run_experiment(config, out, resume=True)


def test_tensorboard_has_every_metric_by_its_name(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard", reason="the extra turnout[track] is not installed")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    interrupted_and_resumed("tensorboard", tmp_path / "out")
    seen = EventAccumulator(str(tmp_path / "out" / CELL)).Reload()
    expected = told(tmp_path / "out" / CELL)
    assert set(seen.Tags()["scalars"]) == set(expected) > {"test_accuracy", "delivered"}
    for name, points in expected.items():
        found = [(event.step, event.value) for event in seen.Scalars(name)]
        assert [step for step, _ in found] == [step for step, _ in points], name
        assert [v for _, v in found] == pytest.approx([v for _, v in points], rel=1e-6), name
    assert seen.Tags()["tensors"] == ["settings/text_summary"]


def test_mlflow_has_every_metric_in_its_local_store_and_one_run_a_cell(tmp_path: Path) -> None:
    pytest.importorskip("mlflow", reason="the extra turnout[track] is not installed")
    from turnout.tracking.mlflow import client

    interrupted_and_resumed("mlflow", tmp_path / "out")
    assert (tmp_path / "mlruns").is_dir()
    store = client()
    experiment = store.get_experiment_by_name("run")
    runs = store.search_runs([experiment.experiment_id])
    assert sorted(run.info.run_name for run in runs) == [
        "fedau, seed 0",
        "fedau, seed 1",
        "fedavg, seed 0",
        "fedavg, seed 1",
    ]
    assert {run.info.status for run in runs} == {"FINISHED"}
    (run,) = [run for run in runs if run.info.run_name == "fedau, seed 1"]
    assert run.data.params["method"].startswith("fedau(")
    for name, points in told(tmp_path / "out" / CELL).items():
        history = store.get_metric_history(run.info.run_id, name)
        assert [(metric.step, metric.value) for metric in history] == points, name


def test_wandb_keeps_an_offline_run_in_the_cells_folder(tmp_path: Path) -> None:
    pytest.importorskip("wandb", reason="the extra turnout[track] is not installed")
    # In a process of its own: the last of an offline run is written when that ends.
    config = file(tmp_path, ["run.track=wandb", "run.seeds=[1]", *CHANGES])
    command = [sys.executable, "-m", "turnout", "run", str(config), "--out", "out", "--quiet"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    (log,) = (tmp_path / "out" / CELL).glob("wandb/offline-run-*/run-*.wandb")
    data = log.read_bytes()
    for name in (*told(tmp_path / "out" / CELL), "fedau, seed 1", "participation"):
        assert name.encode() in data


@pytest.fixture
def fragile(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A tracker that fails after its first metrics."""
    said: list[str] = []

    def log(round: int, metrics: Scalars) -> None:
        if said:
            raise OSError("the disk is full")
        said.append(f"round {round}")

    kind = Kind("json", lambda about: Tracker(log, lambda ending: said.append(ending)))
    monkeypatch.setitem(TRACKERS, "fragile", kind)
    return said


def test_a_tracker_that_fails_is_left_behind_with_one_warning(
    fragile: list[str], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with (
        caplog.at_level(logging.WARNING, logger="turnout"),
        follow(["fragile"], About("run", "fedau", 0, tmp_path, {})) as following,
    ):
        for round in range(1, 5):
            following({"round": round, "test_loss": 1.0})
    assert fragile == ["round 1"]
    (warning,) = caplog.messages
    assert "fragile follows no longer (OSError: the disk is full)" in warning


def test_a_tracker_hears_how_the_run_ended(fragile: list[str], tmp_path: Path) -> None:
    about = About("run", "fedau", 0, tmp_path, {})
    with follow(["fragile"], about):
        pass
    with follow(["fragile"], about) as following:
        following.ending = "diverged"
    with pytest.raises(Interrupted), follow(["fragile"], about):
        raise Interrupted("round 3")
    assert fragile == ["done", "diverged", "stopped"]


def test_a_tracker_that_is_not_installed_is_named_before_anything_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(TRACKERS, "mlflow", Kind("no_such_package", TRACKERS["mlflow"].start))
    with pytest.raises(InputError, match=r"'mlflow', which is not installed; it must be: pip"):
        run_experiment(small("run.track=mlflow"), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_an_unknown_tracker_is_refused_in_a_sentence() -> None:
    with pytest.raises(InputError, match=r"run.track.0 is 'tensorbord'; it must be a list of any"):
        small("run.track=tensorbord")


def test_nothing_is_imported_that_is_not_asked_for(tmp_path: Path) -> None:
    before: dict[str, ModuleType] = dict(sys.modules)
    with follow([], About("run", "fedau", 0, tmp_path, {})) as following:
        following({"round": 1, "test_loss": json.loads("1.5")})
    new = set(sys.modules) - set(before)
    assert not {name for name in new if name.split(".")[0] in TRACKERS}
