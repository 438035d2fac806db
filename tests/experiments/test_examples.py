"""Every example reads, says what can be run, and runs where it needs no other data."""

from pathlib import Path

import pytest

from turnout.experiments.methods import methods
from turnout.experiments.read import read
from turnout.experiments.results import read_results
from turnout.experiments.run import run_experiment

EXAMPLES = sorted((Path(__file__).resolve().parents[2] / "examples").glob("*.toml"))
EMBEDDED = ("digits", "quadratics", "least_squares")


def test_there_are_examples() -> None:
    names = {path.stem for path in EXAMPLES}
    assert {"fedau_fashion_mnist", "quadratics", "safari_mnist", "trace"} <= names


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_examples_read(path: Path) -> None:
    config = read(path)
    assert config.run.name == path.stem
    assert methods(config)


@pytest.mark.parametrize(
    "path",
    [path for path in EXAMPLES if read(path).data.name in EMBEDDED],
    ids=lambda path: path.stem,
)
def test_examples_without_other_data_run(path: Path, tmp_path: Path) -> None:
    short = ["run.rounds=3", "run.seeds=[0]", "run.plots=false"]
    outcome = run_experiment(read(path, short), tmp_path / "out")
    assert outcome.failures == []
    assert all(cell.status == "done" for cell in outcome.results.cells)


@pytest.mark.parametrize(
    "path",
    [path for path in EXAMPLES if read(path).data.name not in EMBEDDED],
    ids=lambda path: path.stem,
)
def test_examples_with_real_data_run(
    path: Path, tmp_path: Path, shared_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TURNOUT_DATA", str(shared_data))
    short = ["run.rounds=2", "run.seeds=[0]", "run.plots=false", "run.client_samples=5"]
    assert run_experiment(read(path, short), tmp_path / "out").failures == []


def test_the_quadratics_show_what_their_comment_says(tmp_path: Path) -> None:
    path = next(path for path in EXAMPLES if path.stem == "quadratics")
    folder = run_experiment(read(path, ["run.plots=false"]), tmp_path / "out").results.folder
    gap = {
        cell.label: cell.curve("test_loss")[1][-1] - 7 / 9 for cell in read_results(folder).cells
    }
    assert all(value > -1e-12 for value in gap.values())
    assert gap["γ = 0.05"] > 1  # crawls
    assert gap["γ = 0.5"] > 0.1  # circles
    assert gap["γ = 0.05, η = 5"] < 0.01
    assert gap["γ = 0.05, η = 10"] < 0.01
