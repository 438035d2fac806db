"""Killed at any moment and resumed, a run ends as if nothing had happened, to the byte."""

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.experiments.kills import Job, Killer, killer, moments
from tests.experiments.test_resume import EXACT, exact, text

from turnout.algorithms import RECIPES

ENGINES = ("reference", "batched", "threaded")
"""Those that promise the same bytes for the same number of threads."""
ROUNDS, EVERY = 60, 3
KILLS = 20


@pytest.fixture(scope="module")
def kill() -> Iterator[Killer]:
    with killer() as started:
        yield started


def survivors(kill: Killer, job: Job, seed: str, kills: int, last: int) -> list[Path]:
    """Kill and resume, as many runs as it takes for so many kills in their midst, then let it end."""
    struck, begun, found = 0, 1, [Path(job["out"], "killed-1")]
    for after, delay in moments(random.Random(seed), last):
        job = {**job, "out": str(found[-1])}
        if kill(job, after, delay):
            struck += 1
        else:  # Done before it could be killed: another one.
            begun += 1
            found.append(found[-1].with_name(f"killed-{begun}"))
        if struck == kills:
            kill.let({**job, "out": str(found[-1])})
            return found
    raise AssertionError


def experiment(folder: Path, name: str, engine: str) -> Job:
    file = folder / "experiment.toml"
    file.write_text(text(name, engine).replace("rounds = 30", f"rounds = {ROUNDS}"))
    threads = 2 if engine == "threaded" else 1
    return {"kind": "experiment", "file": str(file), "out": str(folder), "threads": threads}


def survives(kill: Killer, folder: Path, name: str, engine: str, kills: int) -> None:
    job, whole = experiment(folder, name, engine), folder / "whole"
    kill.let({**job, "out": str(whole)})
    expected = exact(whole)
    # Whom ca_fed asks goes by losses, so that no log of it can be replayed.
    assert len(expected) == len(EXACT) - (name == "ca_fed")
    for out in survivors(kill, job, f"{name} {engine}", kills, ROUNDS):
        assert exact(out) == expected
        (metrics,) = out.rglob("metrics.jsonl")
        rounds = [json.loads(line)["round"] for line in metrics.read_text().splitlines()]
        assert rounds == list(range(EVERY, ROUNDS + 1, EVERY))
        assert not list(out.rglob("round-*"))


def test_a_run_survives_being_killed(kill: Killer, tmp_path: Path) -> None:
    survives(kill, tmp_path, "fedau", "auto", kills=4)


def together_survives(kill: Killer, folder: Path, name: str, kills: int) -> None:
    """Cells of three seeds that train together."""
    job, whole = experiment(folder, name, "auto"), folder / "whole"
    file = Path(job["file"])
    file.write_text(file.read_text().replace("seeds = [0]", "seeds = [0, 1, 2]"))
    kill.let({**job, "out": str(whole)})
    expected = exact(whole)
    assert len(expected) == 3 * len(EXACT)
    assert all("3 small cells" in status.read_text() for status in whole.rglob("status.json"))
    for out in survivors(kill, job, f"{name} together", kills, ROUNDS):
        assert exact(out) == expected
        assert not list(out.rglob("round-*"))


def test_cells_that_train_together_survive_being_killed(kill: Killer, tmp_path: Path) -> None:
    together_survives(kill, tmp_path, "scaffold", kills=4)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["fedau", "mifa", "safari", "scaffold"])
def test_cells_that_train_together_survive_twenty_kills(
    kill: Killer, tmp_path: Path, name: str
) -> None:
    together_survives(kill, tmp_path, name, KILLS)


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", sorted(RECIPES))
def test_every_algorithm_survives_twenty_kills(
    kill: Killer, tmp_path: Path, name: str, engine: str
) -> None:
    survives(kill, tmp_path, name, engine, KILLS)


ITEM = """
[item]
title = "a title"
rows = ["s"]
columns = ["method"]
[run]
rounds = 12
seeds = [0, 1]
evaluate_every = 2
[data]
name = "digits"
partition = { name = "iid", clients = 6 }
[participation]
process = "uniform"
per_round = 3
absent = 0
[local]
steps = 2
[[algorithm]]
name = "mifa"
[[algorithm]]
name = "scaffold"
[[algorithm]]
name = "amplified"
period = 4
[[grid]]
axis = "s"
set = "participation.absent"
values = [0, 2]
[warm_up]
rounds = 8
set = ["local.lr=0.02"]
"""


def records(folder: Path) -> dict[str, Any]:
    """What is in the folder of cells, without the time that it took."""
    assert not list(folder.glob("*.partial"))
    found: dict[str, Any] = {path.name: path.read_bytes() for path in folder.glob("*.safetensors")}
    for path in folder.glob("*.json"):
        record = json.loads(path.read_text())
        found[path.name] = {
            key: value
            for key, value in record.items()
            if key not in ("seconds", "evaluating", "versions")
        }
    return found


def reproduction_survives(kill: Killer, folder: Path, kills: int) -> None:
    file = folder / "item.toml"
    file.write_text(ITEM)
    job = {"kind": "reproduction", "file": str(file), "out": str(folder / "whole")}
    kill.let(job)
    expected = records(folder / "whole")
    assert len(expected) == 2 * (2 + 2 + 6)  # warm-ups, their models, and a cell for each point
    for out in survivors(kill, {**job, "out": str(folder)}, "reproduction", kills, last=12):
        assert records(out) == expected


@pytest.mark.slow
def test_a_reproduction_survives_twenty_kills(kill: Killer, tmp_path: Path) -> None:
    reproduction_survives(kill, tmp_path, KILLS)
