"""The leaderboard's rules: the same budget for all, and a test set that decides nothing."""

from collections import Counter

import numpy as np
import pytest

from turnout.errors import InputError
from turnout.reproduce import leaderboard, tuning
from turnout.reproduce.grid import cells
from turnout.reproduce.item import find
from turnout.reproduce.leaderboard import play
from turnout.reproduce.play import simulation_of
from turnout.reproduce.request import Request
from turnout.reproduce.tuning import Sizes, cell_at, points_of


@pytest.fixture(scope="module")
def request_of(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cells")
    return lambda name, scale="smoke": Request(find("leaderboard", name)[0], scale, None, folder)


@pytest.fixture(scope="module")
def board(request_of):
    return play(request_of("fashion"))


def test_eight_patterns_and_all_methods(request_of) -> None:
    points = points_of(request_of("fashion", "laptop"))
    methods = {point["method"] for point in points}
    assert len({point["participation"] for point in points}) == 8
    assert len(points) == 8 * len(methods) - 1  # the oracle knows no rates that drift by steps
    assert len(methods) >= 20


def test_every_method_and_pattern_has_as_many_trials(board) -> None:
    trials = Counter((p.point["method"], p.point["participation"]) for p in board.trials)
    assert set(trials) == set(board.scores)
    assert set(trials.values()) == {3}


def test_trials_see_neither_the_test_set_nor_the_seeds_that_count(request_of) -> None:
    request = request_of("fashion")
    (point,) = (p for p in points_of(request) if set(p.values()) == {"FedKeep", "cyclic"})
    final = cell_at(request, point, 0, Sizes(0.1, 1.0))
    trial = cell_at(request, point, 1000, Sizes(0.1, 1.0), ["data.validation=200"])
    held, shown = (simulation_of(cell.config).world for cell in (trial, final))
    assert len(held.test) == 200
    assert len(held.train) == len(shown.train) - 200
    tested = {row.tobytes() for row in shown.test.inputs.numpy()}
    trained = {row.tobytes() for row in held.train.inputs.numpy()}
    seen = {row.tobytes() for row in held.test.inputs.numpy()}
    assert not seen & trained
    assert not seen & tested
    assert request.item.settings["seed"] not in (0, 1, 2, 3, 4)


def test_chosen_sizes_are_those_that_are_played(board) -> None:
    for cell in board.cells:
        (section,) = cell.config.algorithm
        assert section.options["lr"] == board.chosen[tuple(cell.point.values())].lr


def test_data_sharing_is_a_world_of_its_own_with_the_same_absences(request_of) -> None:
    request = request_of("fashion")
    worlds = {
        point["method"]: simulation_of(cell_at(request, point, 0, Sizes(0.1, 1.0)).config).world
        for point in points_of(request)
        if point["participation"] == "cyclic" and point["method"].startswith("FedAvg")
    }
    plain, mixed = worlds["FedAvg"], worlds["FedAvg, data sharing (server data)"]
    assert (np.diff(mixed.offsets) - np.diff(plain.offsets)).tolist() == [5] * 40
    assert np.array_equal(mixed.participation.mask(30), plain.participation.mask(30))


def _sized(name, **more):
    entry = {"name": name, "label": "m", **more}
    tuning._size(entry, Sizes(0.2, 3.0))
    return entry


def test_sizes_go_where_a_method_takes_them() -> None:
    assert _sized("fedavg") == {"name": "fedavg", "label": "m", "lr": 0.2, "server_lr": 3.0}
    assert _sized("average_all", server_lr=10.0)["server_lr"] == 30
    assert _sized("fedadam", inner={"name": "fedau"})["server_lr"] == pytest.approx(0.03)
    around = _sized("amplified", inner={"name": "fedkeep"})
    assert around["inner"] == {"name": "fedkeep", "server_lr": 3.0}
    helped = _sized("safari")
    assert helped["inner"] == {"name": "fedavg", "server_lr": 3.0}
    assert helped["assistance_lr"] == helped["lr"] == 0.2
    with pytest.raises(InputError, match="centralised has no server_lr"):
        _sized("centralised")


def test_the_best_go_on_to_the_other_board(board, request_of) -> None:
    other = play(request_of("top-cifar10"))
    methods = {method for method, _ in other.scores}
    best = [standing.method for standing in board.standings[:2]]
    assert methods == {*best, "FedAvg"}
    assert all(other.chosen[key] == board.chosen[key] for key in other.chosen)
    assert not other.trials


def test_what_is_said_of_it(request_of) -> None:
    report = leaderboard.leaderboard(request_of("fashion"))
    head, *body = report.shown
    assert head == ["", "Bernoulli", "Markov", "cyclic", "rank"]
    assert len(body) == 6
    for column in (1, 2, 3):
        assert sum("¹" in row[column] for row in body) == 1
    assert sum("ahead of" in note for note in report.notes) == 3
    assert any(note.startswith("FedKeep is first or within") for note in report.notes)
    costs = {row[0]: row for row in report.readings}
    assert costs["FedKeep"][5] == "yes"
    assert costs["FedAvg"][1] == "0"


def test_both_boards_list_the_same_methods() -> None:
    labels = [
        {cell.point["method"] for cell in cells(find("leaderboard", name)[0], "paper", seeds=1)}
        for name in ("fashion", "top-cifar10")
    ]
    assert labels[0] == labels[1]
