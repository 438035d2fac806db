"""Cells of `turnout run` that differ in seeds and step sizes only train together, and end as alone."""

import json
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file
from tests.experiments.test_resume import exact, text
from tests.experiments.worlds import small

from turnout import simulator, together
from turnout.experiments import run as module
from turnout.experiments.cells import Place
from turnout.experiments.config import Config
from turnout.experiments.interrupt import Asked, Interrupted
from turnout.experiments.plan import Cells
from turnout.experiments.read import change, configure, parse
from turnout.experiments.results import read_results
from turnout.experiments.run import run_experiment
from turnout.simulator import DivergenceError


def config(*changes: str, name: str = "fedau") -> Config:
    several = ["run.seeds=[0, 1, 2]", "run.rounds=12", *changes]
    return configure(change(parse(text(name)), several))


def planned(config: Config, out: Path) -> list[list[str]]:
    found: list[list[str]] = []

    def plan(groups: list[list[Place]]) -> None:
        found.extend([place.name for place in group] for group in groups)

    run_experiment(config, out, planned=plan)
    return found


def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "room", lambda simulation, rounds: 1)


def close(one: Path, other: Path) -> None:
    """The same cells, up to rounding in single precision."""
    mine, others = read_results(one).cells, read_results(other).cells
    for a, b in zip(mine, others, strict=True):
        assert (a.label, a.seed, a.status, a.round) == (b.label, b.seed, b.status, b.round)
        for metric in ("test_loss", "train_loss"):
            np.testing.assert_allclose(a.curve(metric)[1], b.curve(metric)[1], rtol=1e-4)
        x, y = (load_file(cell.folder / "model.safetensors") for cell in (a, b))
        for key in x:
            np.testing.assert_allclose(x[key], y[key], rtol=1e-3, atol=1e-5)
    for name in ("participation.parquet",):
        for file in one.rglob(name):
            assert file.read_bytes() == (other / file.relative_to(one)).read_bytes()


def test_seeds_of_each_method_are_a_group(tmp_path: Path) -> None:
    assert planned(small("run.rounds=2"), tmp_path) == [
        ["fedavg, seed 0", "fedavg, seed 1"],
        ["fedau, seed 0", "fedau, seed 1"],
    ]
    for cell in read_results(tmp_path).cells:
        assert cell.engine.endswith("; 2 small cells trained together")


def test_a_mask_need_not_be_longer_than_the_run(tmp_path: Path) -> None:
    """Who trains together is told by the first rounds, of which there may be few."""
    mask = np.eye(12, dtype=bool)[:2]
    np.save(tmp_path / "mask.npy", mask)
    given = f"participation={{process='given', mask='{tmp_path / 'mask.npy'}'}}"
    assert planned(config(given, "run.rounds=2"), tmp_path / "out") == [
        ["fedau, seed 0", "fedau, seed 1", "fedau, seed 2"]
    ]


def test_step_sizes_join_it_and_other_settings_do_not() -> None:
    three = "algorithm=[{name='fedau'}, {name='fedau', lr=0.2}, {name='fedau', cutoff=7}]"
    cells = Cells(small(three, "run.seeds=[0, 1]"))
    groups = cells.groups(dict.fromkeys(cells.methods, 16))
    assert [len(group) for group in groups] == [4, 2]
    rooms = dict(zip(cells.methods, (16, 3, 16), strict=True))
    assert [len(group) for group in cells.groups(rooms)] == [2, 2, 2]
    assert sum(map(len, cells.groups(dict.fromkeys(cells.methods, 1))), 0) == 6


@pytest.mark.parametrize(
    "more",
    ["run.precision='bf16'", "run.engine='threaded'", "model.name='cnn'"],
)
def test_who_would_not_gain_plays_alone(tmp_path: Path, more: str) -> None:
    groups = planned(config("run.rounds=1", more), tmp_path)
    assert [len(group) for group in groups] == [1, 1, 1]


@pytest.mark.parametrize("name", ["fedau", "scaffold", "safari", "mifa"])
def test_together_as_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    blocks = []
    real = together.Joint.train
    monkeypatch.setattr(
        together.Joint,
        "train",
        lambda joint, cohorts: blocks.append(len(cohorts)) or real(joint, cohorts),
    )
    run_experiment(config(name=name), tmp_path / "together")
    assert max(blocks) == 3
    alone(monkeypatch)
    run_experiment(config(name=name), tmp_path / "alone")
    close(tmp_path / "together", tmp_path / "alone")


@pytest.mark.parametrize("name", ["scaffold", "safari"])
@pytest.mark.parametrize("round", [0, 5, 10])
def test_stopped_and_resumed_is_the_same_to_the_byte(tmp_path: Path, name: str, round: int) -> None:
    asked = Asked()

    def watch(place: Place, happened: simulator.Round, metrics: object) -> None:
        asked.stop = asked.stop or (happened.round >= round and place.seed == 1)

    with pytest.raises(Interrupted, match=rf"seed 0 and .*seed 2, round {round + 1}; all is kept"):
        run_experiment(config(name=name), tmp_path / "cut", watch, asked)
    run_experiment(config(name=name), tmp_path / "cut", resume=True)
    run_experiment(config(name=name), tmp_path / "whole")
    assert exact(tmp_path / "cut") == exact(tmp_path / "whole")
    assert not list((tmp_path / "cut").rglob("round-*"))


@pytest.mark.parametrize("cell", [0, 1, 2])
def test_killed_while_it_writes_results_the_rest_is_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cell: int
) -> None:
    from turnout.experiments import cells

    run_experiment(config(), tmp_path / "whole")
    real, kept = cells._keep, []

    def keep(*what: object) -> None:
        kept.append(what)
        if len(kept) == cell + 1:
            raise KeyboardInterrupt
        real(*what)  # type: ignore[arg-type]

    monkeypatch.setattr(cells, "_keep", keep)
    with pytest.raises(Interrupted):
        run_experiment(config(), tmp_path / "cut")
    assert [c.status for c in read_results(tmp_path / "cut").cells].count("done") == cell
    monkeypatch.setattr(cells, "_keep", real)
    heard = []
    run_experiment(config(), tmp_path / "cut", lambda *what: heard.append(what), resume=True)
    assert not heard  # nothing is trained again
    assert exact(tmp_path / "cut") == exact(tmp_path / "whole")


def test_who_diverges_ends_and_the_others_are_what_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = simulator.closed

    def closed(simulation, progress, turn, blocks):
        happened = real(simulation, progress, turn, blocks)
        if simulation.training.seed == 1 and turn.round == 5:
            raise DivergenceError("fedau", 5)
        return happened

    monkeypatch.setattr(simulator, "closed", closed)
    monkeypatch.setattr(together, "closed", closed)
    outcome = run_experiment(config(), tmp_path / "whole")
    assert [cell.status for cell in outcome.results.cells] == ["done", "diverged", "done"]
    assert [cell.round for cell in outcome.results.cells] == [12, 5, 12]
    asked = Asked()

    def watch(place: Place, happened: simulator.Round, metrics: object) -> None:
        asked.stop = happened.round >= 8

    with pytest.raises(Interrupted, match="seed 0 and fedau, seed 2, round 9"):
        run_experiment(config(), tmp_path / "cut", watch, asked)
    run_experiment(config(), tmp_path / "cut", resume=True)
    assert exact(tmp_path / "cut") == exact(tmp_path / "whole")
    alone(monkeypatch)
    run_experiment(config(), tmp_path / "alone")
    close(tmp_path / "whole", tmp_path / "alone")


def test_jobs_share_out_groups_and_change_no_byte(tmp_path: Path) -> None:
    two = "algorithm=[{name='fedau'}, {name='fedvarp'}]"
    one = run_experiment(config(two), tmp_path / "one")
    run_experiment(config(two), tmp_path / "two", jobs=2)
    assert exact(tmp_path / "one") == exact(tmp_path / "two")
    assert len(one.results.cells) == 6
    for cell in one.results.cells:
        status = json.loads((cell.folder / "status.json").read_text())
        assert status["why"].endswith("3 small cells trained together")
