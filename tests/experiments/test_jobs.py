"""Side by side or one after another: the same comes out, whatever happens to a process."""

import logging
import multiprocessing
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from tests.experiments.test_resume import exact
from tests.experiments.waiting import wait_for_checkpoints
from tests.experiments.worlds import file, small

from turnout.errors import InputError, WorkerError
from turnout.experiments.interrupt import Asked, Interrupted
from turnout.experiments.jobs import Tell, _portable, play
from turnout.experiments.run import run_experiment

log = logging.getLogger("turnout")


class Unsendable(Exception):  # noqa: N818
    def __init__(self, one: int, two: int) -> None:
        super().__init__(f"{one} and {two}")


class Squares(NamedTuple):
    """Squares numbers, and does on some of them what must not bring down the others."""

    dies: dict[int, int] = {}  # noqa: RUF012 - how often, by task
    raises: dict[int, int] = {}  # noqa: RUF012
    rounds: int = 3

    def name(self, task: int) -> str:
        return f"task {task}"

    def play(self, task: int, tell: Tell, asked: Asked, again: bool) -> int:
        for round in range(self.rounds):
            if asked.stop:
                raise Interrupted(f"task {task}, round {round}")
            if self.dies.get(task, 0) > again:
                os.kill(os.getpid(), signal.SIGKILL)
            if task in self.raises:
                raise InputError(f"task is {task}; it must be {self.raises[task]}")
            tell(round)
        log.warning("task %d is done", task)
        return task**2


@pytest.mark.parametrize("jobs", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_each_task_with_what_came_of_it(jobs: int, caplog: pytest.LogCaptureFixture) -> None:
    told: list[tuple[Any, ...]] = []
    found = list(play(Squares(), [3, 4, 5], jobs, lambda *what: told.append(what)))
    assert sorted(found) == [(3, 9), (4, 16), (5, 25)]
    for task in (3, 4, 5):
        assert [round for number, round in told if number == task] == [0, 1, 2]
        assert f"task {task} is done" in caplog.text
    assert not multiprocessing.active_children()


def test_who_dies_once_is_tried_again_and_who_dies_twice_stops_nobody_else(
    caplog: pytest.LogCaptureFixture,
) -> None:
    found: dict[int, int] = {}
    with pytest.raises(WorkerError, match="died twice at task 4"):  # noqa: PT012
        for task, result in play(Squares(dies={3: 1, 4: 2}), [3, 4, 5], 2):
            found[task] = result
    assert found == {3: 9, 5: 25}
    assert "worker process at task 3 died (SIGKILL); it is tried once more" in caplog.text
    assert "worker process at task 4 died again (SIGKILL)" in caplog.text


def test_what_one_task_raises_ends_all() -> None:
    with pytest.raises(InputError) as caught:
        list(play(Squares(raises={3: 4}), [3, 4], 2))
    assert str(caught.value) == "task is 3; it must be 4"
    assert "in play" in caught.value.__notes__[0]  # where it happened
    assert not multiprocessing.active_children()


def test_what_cannot_be_sent_is_told() -> None:
    error = _portable(Unsendable(1, 2))
    assert isinstance(error, RuntimeError)
    assert "Unsendable: 1 and 2" in str(error)


@pytest.mark.slow
def test_asked_to_stop_all_say_how_far_they_are() -> None:
    asked = Asked()

    def told(task: int, round: int) -> None:
        asked.stop = True

    with pytest.raises(Interrupted, match=r"task \d, round [1-9]\d*; task \d, round"):
        list(play(Squares(rounds=10**9), [3, 4, 5], 2, told, asked))


def test_who_was_asked_before_the_first_task_begins_none() -> None:
    asked = Asked()
    asked.stop = True
    with pytest.raises(Interrupted, match="task 3"):
        list(play(Squares(), [3, 4], 2, asked=asked))


def test_cells_do_not_depend_on_jobs_nor_on_a_worker_that_is_killed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    config = small("run.checkpoint_seconds=0")
    run_experiment(config, tmp_path / "one")
    killed: list[int] = []

    def watch(cell: object, happened: Any, metrics: object) -> None:
        if happened.round == 3 and not killed:
            (worker, *_) = multiprocessing.active_children()
            assert worker.pid is not None
            killed.append(worker.pid)
            os.kill(worker.pid, signal.SIGKILL)

    outcome = run_experiment(config, tmp_path / "two", watch, jobs=2)
    assert killed
    assert "died (SIGKILL); it is tried once more" in caplog.text
    assert [cell.status for cell in outcome.results.cells] == ["done"] * 4
    assert exact(tmp_path / "one") == exact(tmp_path / "two")


SLOW = [pytest.param(kind, marks=pytest.mark.slow) for kind in (signal.SIGTERM, signal.SIGKILL)]


@pytest.mark.parametrize("kind", [signal.SIGINT, *SLOW])
def test_signals_to_the_whole_group_and_to_the_parent_alone(
    tmp_path: Path, kind: signal.Signals
) -> None:
    rounds = "run.rounds=400"
    path, out = (
        file(tmp_path, [rounds, "run.checkpoint_seconds=0", "run.seeds=[0]"]),
        tmp_path / "out",
    )
    command = [sys.executable, "-m", "turnout", "run", str(path), "--out", str(out), "--jobs", "2"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True)
    try:
        wait_for_checkpoints(process, out, cells=2)
        if kind is signal.SIGINT:  # as terminals do
            os.killpg(process.pid, kind)
        else:
            os.kill(process.pid, kind)
        _, said = process.communicate(timeout=60)
    finally:
        process.kill()
        process.communicate()
    if kind is signal.SIGKILL:
        assert process.returncode == -kind
    else:
        assert process.returncode == 130
        assert "fedavg, seed 0, round " in said
        assert "; fedau, seed 0, round " in said or "; fedavg, seed 0, round " in said
        assert f"--out {out} --resume" in said
    assert "Traceback" not in said
    config = small(rounds, "run.seeds=[0]", "run.name=small")
    run_experiment(config, out, resume=True)
    run_experiment(config, tmp_path / "whole")
    assert exact(out) == exact(tmp_path / "whole")
