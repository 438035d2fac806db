"""Live progress: what is known of the cells, and how it is told on terminals and in pipes."""

import io
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console
from tests.experiments.worlds import small

from turnout.cli import progress as module
from turnout.cli.progress import Telling, fitting, line, lines, progress
from turnout.cli.standing import Heard, Row, Standing
from turnout.experiments.cells import Place
from turnout.experiments.run import Watch
from turnout.simulator import Round

NOBODY = np.zeros(0, dtype=np.int64)
CELLS = [("fedavg", 0), ("fedau", 0), ("fedavg", 1), ("fedau", 1)]


class Clock:
    """Tells the time that it is set to."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def happened(number: int, came: int = 2, by: str = "clients") -> Round:
    return Round(number, by, np.arange(3), np.arange(came), np.ones(came))


def hear(standing: Standing, cell: int, number: int, accuracy: float | None = None) -> None:
    label, seed = standing.cells[cell]
    metrics = None if accuracy is None else {"round": number + 1, "test_accuracy": accuracy}
    standing.hear(Place(label, seed, Path()), happened(number), metrics)


def test_rate_and_time_left_follow_from_the_rounds_that_were_heard_of() -> None:
    clock = Clock()
    standing = Standing(CELLS, 100, clock=clock)
    assert standing.rate is None
    for number in range(100):
        clock.now += 0.5
        hear(standing, 0, number)
    assert standing.done == 100
    assert standing.rate == pytest.approx(2, rel=0.05)
    assert standing.left == pytest.approx(150, rel=0.05)
    for number in range(100):
        clock.now += 0.1
        hear(standing, 1, number)
    for number in range(50):
        clock.now += 1
        hear(standing, 2, number)
    assert standing.rate == pytest.approx(1, rel=0.05), "of the last half minute"


def test_what_was_done_before_a_resume_is_over_but_not_part_of_the_rate() -> None:
    clock = Clock()
    standing = Standing(CELLS, 100, clock=clock)
    clock.now = 60.0  # for imports and data, which say nothing of the rounds
    hear(standing, 2, 40)  # two cells were done, and 40 rounds of the third
    assert (standing.over, standing.done) == (2, 241)
    assert standing.left is None
    clock.now = 61.0
    hear(standing, 2, 41)
    assert standing.rate == pytest.approx(1)
    assert [row.over for row in standing.rows()] == [1, 1]


def test_a_slow_cell_stays_at_work_while_others_come_and_go() -> None:
    standing = Standing(CELLS, 10, jobs=2)
    hear(standing, 0, 0)
    for cell in (1, 2):
        for number in range(10):
            hear(standing, cell, number)
            hear(standing, 0, 1)
    hear(standing, 3, 0)
    assert sorted(standing.working) == [0, 3]
    assert standing.over == 2


def test_a_cell_that_diverged_is_over_once_the_next_begins() -> None:
    standing = Standing(CELLS, 10)
    hear(standing, 0, 3)
    hear(standing, 1, 0)
    assert standing.working == [1]
    assert standing.done == 11


def test_a_group_is_at_work_as_one() -> None:
    standing = Standing(CELLS, 10)
    standing.plan([[("fedavg", 0), ("fedavg", 1)], [("fedau", 0), ("fedau", 1)]])
    assert standing.cells == [("fedavg", 0), ("fedavg", 1), ("fedau", 0), ("fedau", 1)]
    for number in range(4):
        hear(standing, 0, number)
        hear(standing, 1, number)
        assert sorted(standing.working) == [0, 1]
        assert (standing.over, standing.done) == (0, 2 * (number + 1))
    for number in range(4, 10):  # the first one has diverged
        hear(standing, 1, number)
    assert (standing.working, standing.over) == ([], 2)
    hear(standing, 2, 0)
    hear(standing, 3, 0)
    assert (standing.working, standing.over) == ([2, 3], 2)
    assert [(row.label, row.over, row.at_work) for row in standing.rows()] == [
        ("fedavg", 2, False),
        ("fedau", 0, True),
    ]


def test_accuracy_so_far_is_the_mean_over_seeds_and_stays_between_evaluations() -> None:
    standing = Standing(CELLS, 100)
    hear(standing, 0, 99, accuracy=0.8)
    hear(standing, 2, 9, accuracy=0.6)
    hear(standing, 2, 10)
    fedavg, fedau = standing.rows()
    assert fedavg.score == "70.0 %"
    assert fedavg.newest == Heard(11, 2, 0.6)
    assert fedau.newest is None


def test_lines_in_pipes_come_now_and_then_and_not_in_short_runs() -> None:
    clock, said = Clock(), []
    standing = Standing(CELLS, 100, clock=clock)
    watch = lines(standing, lambda: said.append((clock.now, line(standing))))
    for cell in range(2):
        label, seed = CELLS[cell]
        for number in range(100):
            clock.now += 0.5
            watch(Place(label, seed, Path()), happened(number), {"test_accuracy": 0.5})
    times = [round(when) for when, _ in said]
    assert times == [37, 50, 80, 100]
    assert said[1][1].startswith("fedavg, seed 0: round 100 of 100, 50.0 %, 2 took part; ")
    assert said[1][1].endswith("1 of 4 cells done, 2.0 rounds/s, 2 min left")


def test_lines_say_who_trained_where_the_server_did() -> None:
    standing = Standing([("safari", 0)], 10)
    standing.hear(Place("safari", 0, Path()), happened(0, by="server"), None)
    assert line(standing).startswith("safari, seed 0: round 1 of 10, server round; ")


@contextmanager
def told(telling: Telling, console: Console, changes: list[str] | None = None) -> Iterator[Watch]:
    with progress(small(*(changes or [])), telling, console=console) as found:
        assert found is not None
        yield found.watch


def test_json_is_an_object_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PATIENCE", 0.0)
    monkeypatch.setattr(module, "APART", 0.0)
    out = io.StringIO()
    with told(Telling.as_json, Console(file=out)) as watch:
        watch(Place("fedavg", 0, Path()), happened(5), {"test_accuracy": 0.5})
    (text,) = out.getvalue().splitlines()
    found = json.loads(text)
    assert (found["algorithm"], found["round"], found["cells_done"]) == ("fedavg", 6, 1)
    assert found["delivered"] == 2


def test_a_terminal_shows_a_row_a_method_and_a_bar() -> None:
    out = io.StringIO()
    console = Console(file=out, force_terminal=True, width=100, height=30)
    with told(Telling.to_people, console) as watch:
        for number in range(6):
            watch(Place("fedavg", 0, Path()), happened(number), {"test_accuracy": 0.5})
        watch(Place("fedau", 0, Path()), happened(0), {"test_accuracy": 0.75})
    text = out.getvalue()
    assert "took part" in text
    for part in ("1 of 2", "75.0 %", "1 of 6", "1 of 4 cells done"):
        assert part in text


def test_quiet_has_nobody_to_call() -> None:
    with progress(small(), Telling.not_at_all) as watch:
        assert watch is None


def test_a_low_terminal_shows_the_methods_at_work() -> None:
    rows = [
        Row(str(k), 1, int(k < 7), k == 7, Heard(1, 1) if k < 8 else None, "") for k in range(20)
    ]
    assert [row.label for row in fitting(rows, 4)] == ["4", "5", "6", "7"]
    assert fitting(rows, 20) == rows
