"""Tables in files: the same numbers as in memory, in a bounded part of it."""

import subprocess
import sys
from pathlib import Path
from shutil import disk_usage

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.conformance.cases import CASES, ROUNDS, classification, logistic

from turnout import checkpoint
from turnout.errors import InputError
from turnout.runs import simulate
from turnout.simulator import Simulation, advance, begin, client_tables, made, restore
from turnout.tables import FileTable, Tables

IN_FILES = Tables(limit=0)
WITH_TABLES = ["mifa", "fedvarp", "mifa, client-held", "scaffold", "safari, scaffold"]


@given(st.integers(0, 10**6), st.sampled_from([torch.float32, torch.float64]))
@settings(max_examples=30)
def test_a_file_holds_what_a_tensor_would(seed, dtype) -> None:
    draw = np.random.default_rng(seed)
    like = torch.zeros(3, dtype=dtype)
    held, expected = IN_FILES.zeros(8, like), torch.zeros(8, 3, dtype=dtype)
    assert isinstance(held, FileTable)
    assert (len(held), held.shape, held.nbytes) == (8, expected.shape, expected.nbytes)
    for _ in range(4):
        rows = torch.from_numpy(draw.permutation(8)[: draw.integers(9)])
        block = torch.from_numpy(draw.normal(size=(len(rows), 3))).to(dtype)
        assert torch.equal(held[rows], expected[rows])
        held[rows] = expected[rows] = block
    first = int(draw.integers(8))
    np.testing.assert_array_equal(held.read(first, first + 3), expected[first : first + 3])
    held.fill(6, np.ones((2, 3), expected.numpy().dtype))
    assert held[torch.tensor([5, 6, 7])].tolist() == [expected[5].tolist(), [1] * 3, [1] * 3]


@pytest.mark.parametrize("case", WITH_TABLES)
def test_runs_are_the_same_to_the_bit(case) -> None:
    def run(tables: Tables) -> torch.Tensor:
        found = simulate(CASES[case], classification(), logistic(), ROUNDS, tables=tables)
        return found.x

    assert torch.equal(run(IN_FILES), run(Tables()))


@pytest.mark.parametrize("case", WITH_TABLES)
@pytest.mark.parametrize("whole", [True, False], ids=["whole", "in blocks"])
def test_checkpoints_hold_them_and_either_kind_goes_on(
    case, whole, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not whole:
        monkeypatch.setattr(checkpoint, "BLOCK_BYTES", 64)
    of = (CASES[case], classification(), logistic())
    first, second = (Simulation.of(*of, tables=tables) for tables in (IN_FILES, Tables()))
    progress = begin(first)
    for t in range(6):
        advance(first, progress)
        names = client_tables(first)
        checkpoint.save(tmp_path, t + 1, progress, None, progress.delivered, names)
    models = []
    for simulation in (first, second):
        found = checkpoint.load(tmp_path, made=made(simulation.zeros))
        assert found is not None
        going = restore(simulation, found.tree)
        memory = case in ("mifa", "fedvarp")
        kinds = (
            {type(going.server.memory["table"])} if memory else {*map(type, going.kept.values())}
        )
        assert kinds == {torch.Tensor if simulation is second else FileTable}
        for _ in range(6, ROUNDS):
            advance(simulation, going)
        models.append(going.server.x)
    for _ in range(6, ROUNDS):
        advance(first, progress)
    assert torch.equal(models[0], progress.server.x)
    assert torch.equal(models[1], progress.server.x)


def test_no_room_is_said_before_anything_is_done(tmp_path: Path) -> None:
    free = disk_usage(tmp_path).free
    with pytest.raises(InputError, match=r"takes .*B, and .* has .* left"):
        Tables(0, tmp_path).zeros(free // 4, torch.zeros(2))
    with pytest.raises(InputError, match=r"cannot hold a table of .*: No such file or directory"):
        Tables(0, tmp_path / "none").zeros(4, torch.zeros(2))
    assert not list(tmp_path.iterdir())


def test_nothing_is_left_behind(tmp_path: Path) -> None:
    held = Tables(0, tmp_path).zeros(4, torch.zeros(2))
    held[torch.tensor([3])] = torch.ones(1, 2)
    assert not list(tmp_path.iterdir())


PEAK = r"""
import re, resource, sys
import numpy as np, torch
from pathlib import Path
from turnout import Local, Model, World, algorithms, participation, simulate
from turnout.data.pool import Pool
from turnout.tables import Tables

def peak():  # in bytes
    if sys.platform == "darwin":
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    # Linux hands ru_maxrss on to what a process starts: it would be that of pytest.
    return 1024 * int(re.search(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text())[1])
"""

FOUR_GIGABYTES = """
clients, dim, each = 4096, 262_144, 128
came = np.arange(clients).reshape(-1, each)
mask = np.zeros((len(came), clients), dtype=bool)
np.put_along_axis(mask, came, True, 1)
pool = Pool(torch.zeros(clients, 1), torch.zeros(clients, 1))
world = World(pool, np.arange(clients + 1), pool, participation.given(mask, repeat=True))

class Wide(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.x = torch.nn.Parameter(torch.ones(dim))
    def forward(self, inputs):
        return self.x.mean() + inputs

run = simulate(
    getattr(algorithms, sys.argv[1])(local=Local(steps=2, batch_size=None)), world,
    Model.of(Wide()), len(came) + 4, evaluate_every=10**6, tables=Tables(folder=Path(sys.argv[2])),
)
print(peak(), clients * dim * 4, sum(row["delivered"] > 0 for row in run.clients))
"""

A_MILLION = """
clients = 1_000_000
pool = Pool(torch.randn(clients, 8), torch.randn(clients))
comes = participation.bernoulli(1e-3, clients)
world = World(pool, np.arange(clients + 1), pool, comes)
run = simulate(
    algorithms.fedau(local=Local(0.1, 2)), world, Model.of("linear", (8,)), 100, evaluate_every=50
)
came = [row["delivered"] for row in run.clients]
print(peak(), len(run.history), sum(came))
"""


def measured(script: str, *arguments: str) -> list[float]:
    command = [sys.executable, "-W", "error", "-c", PEAK + script, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return [float(word) for word in done.stdout.split()]


ROOM = 6 * 10**9


@pytest.mark.slow
@pytest.mark.parametrize("method", ["mifa", "fedvarp", "scaffold"])
def test_four_gigabytes_of_tables_in_less_than_two_of_memory(method, tmp_path: Path) -> None:
    if disk_usage(tmp_path).free < ROOM:
        pytest.skip(f"{tmp_path} has no room for {ROOM / 1e9:.0f} GB")
    peak, size, written = measured(FOUR_GIGABYTES, method, str(tmp_path))
    assert size > 4e9
    assert written == 4096  # every row, so that it could not have stayed small by itself
    assert peak < 2e9


@pytest.mark.slow
def test_a_million_clients_in_half_a_gigabyte() -> None:
    peak, evaluations, deliveries = measured(A_MILLION)
    assert evaluations == 2
    assert deliveries > 90_000
    assert peak < 500e6
