"""Two processes at one run: the model of one process, on both, for every algorithm."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from tests.conformance.cases import CASES, ROUNDS, classification, in_process, logistic
from tests.experiments.worlds import file, small
from tests.ranks.conformance import one_by_one

from turnout.experiments.run import run_experiment
from turnout.runs import simulate

IN_FILES = ["mifa", "scaffold", "mifa, client-held"]


def torchrun(module: str, *arguments: str, ranks: int = 2) -> str:
    """What they print. The launcher's own warnings are its own affair."""
    launcher = ["torch.distributed.run", "--standalone", f"--nproc-per-node={ranks}"]
    command = [sys.executable, "-m", *launcher, "-m", module, *arguments]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> list[dict]:
    folder = tmp_path_factory.mktemp("ranks")
    torchrun("tests.ranks.conformance", str(folder), ";".join(IN_FILES))
    return [torch.load(folder / f"rank-{rank}.pt") for rank in range(2)]


@pytest.mark.parametrize("case", CASES)
def test_every_algorithm_is_the_same_as_in_one_process(both, case) -> None:
    """Halfway through it is written by one rank, with all rows, and goes on from there on both."""
    alone = torch.stack(in_process(CASES[case], classification(), logistic(), ROUNDS))
    first, second = (rank["models"][case] for rank in both)
    assert torch.equal(first, second)
    torch.testing.assert_close(first, alone, rtol=1e-9, atol=1e-11)


def test_and_so_it_is_where_updates_arrive_one_by_one(both, tmp_path) -> None:
    alone = torch.stack(in_process(CASES["fedbuff"], one_by_one(tmp_path), logistic(), ROUNDS))
    first, second = (rank["models"]["arrivals"] for rank in both)
    assert torch.equal(first, second)
    assert len(first.unique(dim=0)) > 2
    torch.testing.assert_close(first, alone, rtol=1e-9, atol=1e-11)


def test_simulate_gives_every_rank_the_whole_run(both) -> None:
    alone = simulate(
        CASES["safari, scaffold"], classification(), logistic(), ROUNDS, evaluate_every=2
    )
    first, second = both
    assert first["history"] == second["history"]
    assert [entry["round"] for entry in first["history"]] == alone.curve()[0]
    torch.testing.assert_close(first["models"]["simulate"], alone.x, rtol=1e-5, atol=1e-6)


CHANGES = [
    'algorithm.0.name="mifa"',
    'algorithm.1.name="scaffold"',
    "run.checkpoint_seconds=0",
    "run.evaluate_every=1",
    "run.seeds=[0]",
]


def metrics(out: Path) -> list[dict]:
    files = sorted(out.glob("cells/*/*/metrics.jsonl"))
    return [json.loads(line) for path in files for line in path.read_text().splitlines()]


def names(out: Path) -> list[str]:
    return sorted(str(path.relative_to(out)) for path in out.rglob("*"))


@pytest.mark.parametrize("halted", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_turnout_run_leaves_the_same_directory(tmp_path: Path, halted) -> None:
    """Also where the first rank alone is asked to stop, and all of them go on from what it wrote."""
    path, one, two = file(tmp_path, CHANGES), tmp_path / "one", tmp_path / "two"
    expected = run_experiment(small(*CHANGES), one)
    more = []
    if halted:
        assert torchrun("tests.ranks.stopped", str(path), str(two)).count("stopped") == 2
        assert len(metrics(two)) < len(metrics(one))
        more = ["--resume"]
    said = torchrun("turnout", "run", str(path), "--out", str(two), *more)
    assert said.count("mifa") == 1  # one speaks for all
    assert expected.failures == []
    assert [name for name in names(two) if "report" not in name] == names(one)
    for ours, theirs in zip(metrics(two), metrics(one), strict=True):
        assert ours.keys() == theirs.keys()
        for key, value in theirs.items():
            if value is None or isinstance(value, str):
                assert ours[key] == value
            else:  # of 12 clients some have few samples, of which one may be a close call
                assert ours[key] == pytest.approx(value, abs=1e-3 if "loss" in key else 0.02), key


@pytest.mark.slow
def test_ranks_are_processes_enough(tmp_path: Path) -> None:
    arguments = ["run", str(file(tmp_path)), "--jobs", "2"]
    with pytest.raises(AssertionError, match="jobs is 2; it must be 1 under torchrun"):
        torchrun("turnout", *arguments)
