"""What an experiment leaves in its run directory."""

import csv
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from tests.experiments.worlds import small

from turnout.errors import InputError
from turnout.experiments.cells import participation_log, simulation_of
from turnout.experiments.config import Config
from turnout.experiments.directory import cell_folders, create
from turnout.experiments.plan import Cells
from turnout.experiments.read import configure, parse, read
from turnout.experiments.run import Outcome, run_experiment
from turnout.participation import load
from turnout.runs import simulate


@pytest.fixture(scope="module")
def outcome(tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    return run_experiment(small("run.rounds=5"), tmp_path_factory.mktemp("runs") / "small")


def cell(outcome: Outcome, label: str = "fedau", seed: int = 1) -> Path:
    return outcome.results.folder / "cells" / label / f"seed-{seed}"


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def rows(path: Path) -> list[dict[str, str]]:
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_there_is_a_folder_for_every_method_and_seed(outcome: Outcome) -> None:
    found = {
        path.relative_to(outcome.results.folder / "cells").as_posix()
        for path in outcome.results.folder.glob("cells/*/*")
    }
    assert found == {"fedavg/seed-0", "fedavg/seed-1", "fedau/seed-0", "fedau/seed-1"}


def test_metrics_have_a_line_for_each_evaluated_round_and_no_times(outcome: Outcome) -> None:
    metrics = lines(cell(outcome) / "metrics.jsonl")
    assert [line["round"] for line in metrics] == [2, 4, 5]
    assert {"test_accuracy", "train_loss", "spread_accuracy", "delivered"} <= metrics[-1].keys()
    assert not any("second" in key or "time" in key for key in metrics[-1])
    timing = lines(cell(outcome) / "timing.jsonl")
    assert [line["round"] for line in timing] == [2, 4, 5]
    assert 0 < timing[0]["seconds"] < timing[-1]["seconds"]


def test_the_files_say_what_simulate_says(outcome: Outcome) -> None:
    config = small("run.rounds=5")
    (one,) = [cell for cell in Cells(config).of(1) if cell.label == "fedau"]
    run = simulate(one.algorithm, one.setting.world, one.setting.model, 5, seed=1, evaluate_every=2)
    assert lines(cell(outcome) / "metrics.jsonl") == json.loads(json.dumps(run.history))
    model = load_file(cell(outcome) / "model.safetensors")
    for name, value in run.module.state_dict().items():
        assert torch.equal(model[name], value)
    table = rows(cell(outcome) / "clients.csv")
    assert [int(row["delivered"]) for row in table] == [row["delivered"] for row in run.clients]


def test_equal_runs_leave_equal_bytes(outcome: Outcome, tmp_path: Path) -> None:
    again = run_experiment(small("run.rounds=5"), tmp_path / "again")
    for name in ("metrics.jsonl", "model.safetensors", "clients.csv", "classes.csv", "status.json"):
        assert (cell(again) / name).read_bytes() == (cell(outcome) / name).read_bytes(), name


def test_the_resolved_configuration_repeats_the_run(outcome: Outcome, tmp_path: Path) -> None:
    config = read(outcome.results.folder / "config.toml")
    assert config.algorithm[1].options["cutoff"] == 50  # defaults are written out
    again = run_experiment(config, tmp_path / "again")
    assert (cell(again) / "metrics.jsonl").read_bytes() == (
        cell(outcome) / "metrics.jsonl"
    ).read_bytes()
    assert read(again.results.folder / "config.toml") == config


def test_the_participation_log_is_what_the_world_replays(outcome: Outcome) -> None:
    log = load(cell(outcome) / "participation.parquet")
    (one,) = [cell for cell in Cells(small()).of(1) if cell.label == "fedau"]
    assert (log.mask() == one.setting.world.participation.mask(5)).all()


def test_nobody_is_asked_in_rounds_that_the_server_trains() -> None:
    config = small("algorithm.0.name=safari", "algorithm.0.q=0.0")
    (one, *_) = Cells(config).of(0)
    assert not participation_log(simulation_of(one, config.run), 6).mask(cohort=True).any()


def test_the_class_table_says_who_was_seen_and_how_each_class_fares(outcome: Outcome) -> None:
    table = rows(cell(outcome) / "classes.csv")
    (one,) = [cell for cell in Cells(small()).of(1) if cell.label == "fedau"]
    world = one.setting.world
    assert [int(r["class"]) for r in table] == list(range(10))
    assert sum(int(row["samples"]) for row in table) == len(world.train)
    seen = world.participation.mask(5).any(0)
    came = np.diff(world.offsets)[seen].sum()
    assert sum(int(row["samples_seen"]) for row in table) == came
    sizes = np.bincount(world.test.targets.numpy())
    mean = sum(n * float(r["accuracy"]) for n, r in zip(sizes, table, strict=True)) / sizes.sum()
    assert mean == pytest.approx(lines(cell(outcome) / "metrics.jsonl")[-1]["test_accuracy"])


def test_versions_are_written_down(outcome: Outcome) -> None:
    versions = json.loads((outcome.results.folder / "versions.json").read_text(encoding="utf-8"))
    assert versions["torch"].startswith(torch.__version__.split("+")[0])
    assert {"python", "numpy", "turnout", "platform"} <= versions.keys()


SUDDEN = {"factors": [0.1, 1e38], "until": [3]}
"""Sensible steps for three rounds, then some that no float can hold."""


def diverging(*changes: str) -> Config:
    table = small(*changes, "run.rounds=8", "run.evaluate_every=1").model_dump()
    table["algorithm"] = [
        {"name": "fedavg", "label": "wild", "lr": 1.0, "schedule": SUDDEN},
        {"name": "fedavg", "label": "calm"},
    ]
    return configure(table)


@pytest.fixture(scope="module")
def diverged(tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    return run_experiment(diverging(), tmp_path_factory.mktemp("runs") / "diverged")


def test_a_diverging_cell_keeps_what_it_had_and_the_others_go_on(diverged: Outcome) -> None:
    wild, calm = cell(diverged, "wild"), cell(diverged, "calm")
    status = json.loads((wild / "status.json").read_text(encoding="utf-8"))
    assert status["status"] == "diverged"
    assert 3 <= status["round"] < 8
    assert [line["round"] for line in lines(wild / "metrics.jsonl")] == list(
        range(1, status["round"] + 1)
    )
    model = load_file(wild / "model.safetensors")
    assert all(bool(torch.isfinite(value).all()) for value in model.values())
    assert json.loads((calm / "status.json").read_text(encoding="utf-8"))["status"] == "done"
    assert len(lines(calm / "metrics.jsonl")) == 8


def test_who_diverged_and_when_is_said(diverged: Outcome) -> None:
    assert len(diverged.failures) == 2  # a seed each
    rounds = [c.round + 1 for c in diverged.results.of("wild")]
    for sentence, round in zip(diverged.failures, rounds, strict=True):
        assert sentence.startswith(f"wild diverged in round {round} of 8 (seed")


def test_metrics_stay_json_when_losses_are_not_finite(diverged: Outcome) -> None:
    for path in diverged.results.folder.rglob("metrics.jsonl"):
        for line in path.read_text(encoding="utf-8").splitlines():
            values = json.loads(line, parse_constant=lambda constant: pytest.fail(constant))
            assert all(not isinstance(v, float) or math.isfinite(v) for v in values.values())


def test_a_directory_with_content_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "precious.txt").write_text("mine")
    with pytest.raises(InputError, match="is not empty"):
        run_experiment(small(), tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["precious.txt"]


def test_bad_input_is_found_before_anything_is_written(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with pytest.raises(InputError, match="auxiliary"):
        run_experiment(small("algorithm.1.name=safari", 'data.auxiliary="none"'), out)
    assert not out.exists()


def test_default_directories_are_named_by_run_and_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    one, two = create(None, "My run"), create(None, "My run")
    assert one.parent == Path("runs")
    assert one.name.startswith("my-run-2")
    assert one != two


def test_labels_get_folders_of_their_own() -> None:
    folders = cell_folders(["FedAU (K = 5)", "fedau k = 5", "γ"])
    assert len(set(folders.values())) == 3


def test_a_file_that_cannot_be_finished_leaves_the_old_one(tmp_path: Path) -> None:
    from turnout.experiments.files import replace, write

    path = tmp_path / "kept.txt"
    write(path, "old")

    def fail(draft: Path) -> None:
        draft.write_text("half")
        raise RuntimeError("power cut")

    with pytest.raises(RuntimeError):
        replace(path, fail)
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["kept.txt"]


def test_resolved_tables_read_as_the_same_experiment() -> None:
    from turnout.experiments.resolved import resolved
    from turnout.experiments.toml import dumps

    config = small(
        "algorithm.0.name=amplified",
        'algorithm.0.inner={name = "safari", q = 0.5, inner = "mifa"}',
        "algorithm.0.lr=0.25",
        "participation={process = 'markov', p = [0.5, 0.1], on = 0.1}",
        'local.batch_size="none"',
    )
    once = configure(parse(dumps(resolved(config))))
    assert configure(parse(dumps(resolved(once)))) == once
    inner = once.algorithm[0].inner
    assert inner is not None
    assert inner.options["q"] == 0.5
    assert inner.inner is not None
    assert inner.inner.options["init"] == "zero"
    assert once.local.batch_size is None


def test_a_cell_says_which_engine_trained_it_and_why(tmp_path: Path) -> None:
    text = """
[run]
rounds = 2
plots = false
[data]
name = "digits"
partition = { name = "iid", clients = 4 }
[participation]
process = "always"
[model]
name = "logistic"
[[algorithm]]
name = "fedavg"
"""
    outcome = run_experiment(configure(parse(text)), tmp_path / "auto")
    (cell,) = outcome.results.cells
    assert cell.engine == "batched: the model's gradients are known by hand"
    half = text.replace("rounds = 2", 'rounds = 2\nprecision = "bf16"')
    (cell,) = run_experiment(configure(parse(half)), tmp_path / "bf16").results.cells
    assert cell.engine == "threaded: it alone has bf16"
    wrong = half.replace("rounds = 2", 'rounds = 2\ndtype = "float64"')
    with pytest.raises(InputError, match=r"dtype is 'torch.float64'; it must be float32 for bf16"):
        run_experiment(configure(parse(wrong)), tmp_path / "both")
