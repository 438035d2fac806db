"""Two processes at one run: the model of one process, on both, for every algorithm."""

import os
import subprocess
import sys

import pytest
import torch
from tests.conformance.cases import CASES, ROUNDS, classification, in_process, logistic

from turnout.simulator import simulate

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


def test_simulate_gives_every_rank_the_whole_run(both) -> None:
    alone = simulate(
        CASES["safari, scaffold"], classification(), logistic(), ROUNDS, evaluate_every=2
    )
    first, second = both
    assert first["history"] == second["history"]
    assert [entry["round"] for entry in first["history"]] == alone.curve()[0]
    torch.testing.assert_close(first["models"]["simulate"], alone.x, rtol=1e-5, atol=1e-6)
