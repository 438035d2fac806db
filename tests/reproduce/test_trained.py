"""What is said of an item's results, from records with numbers that a hand can follow."""

import csv
import json

import pytest

from turnout.reproduce.grid import cells
from turnout.reproduce.item import METHOD, read_item
from turnout.reproduce.report import keep, markdown, plain
from turnout.reproduce.request import Request
from turnout.reproduce.source import fingerprint
from turnout.reproduce.trained import trained

TEXT = """
[item]
title = "gains"
gain_over = "FedAvg"
columns = ["s"]
[run]
rounds = 3
seeds = [0, 1]
tail = 2
[data]
partition = { name = "iid", clients = 6 }
[participation]
process = "uniform"
per_round = 3
[[algorithm]]
name = "fedavg"
label = "FedAvg"
[[algorithm]]
name = "fedau"
label = "FedAU"
[[grid]]
axis = "s"
set = "participation.absent"
values = [0, 2, 4]
[printed]
"FedAU" = ["<2", 9.0, 30.0]
"""
CURVES = {  # over three rounds; the first is the best one
    "FedAvg": [0.50, 0.30, 0.20],
    "FedAU s=0": [0.51, 0.30, 0.22],
    "FedAU s=2": [0.45, 0.30, 0.30],
    "FedAU s=4": [0.72, 0.30, 0.45],
}


@pytest.fixture
def report(tmp_path):
    item = read_item("safari", "mine", TEXT)
    for cell in cells(item, "paper"):
        method, s = cell.point[METHOD], cell.point["s"]
        accuracies = CURVES["FedAvg" if method == "FedAvg" else f"{method} {s}"]
        record = {
            "key": cell.key, "code": fingerprint(cell), "data": "abc", "status": "done",
            "config": {"data": {"name": "digits"}}, "versions": {"torch": "2.0"},
            "seconds": 50.0, "evaluating": 10.0, "classes": [0.1] * 10, "classes_covered": 8,
            "metrics": [{"round": t, "test_accuracy": a} for t, a in enumerate(accuracies, 1)],
        }  # fmt: skip
        for name in ("turnout", "python", "numpy"):
            record["versions"][name] = "1.0"
        (tmp_path / f"{cell.key}.json").write_text(json.dumps(record))
    return trained(Request(item, "paper", None, tmp_path))


def test_verdicts_and_gains(report) -> None:
    # By the best round: gains of 1, −5 and 22 points, of which 22 is within a third of 30.
    assert [entry.ours.mean for entry in report.entries] == pytest.approx([1, -5, 22])
    assert [entry.verdict for entry in report.entries] == ["matches", "differs", "same order"]
    (gains,) = (note for note in report.notes if "gains" in note)
    assert gains == (
        "Of the paper's 2 gains above 5 points 1 have the paper's sign, and 1 are within a third of "
        "its size."
    )


GAINS = ("2.00 · 1.00 · 1.00", "10.00 · -5.00 · 5.00", "25.00 · 22.00 · 12.50")


def test_all_readings(report) -> None:
    # Last round: gains of 2, 10 and 25. Mean of the last two: 1, 5 and 12.5.
    # Clients hold 8 of 10 classes only.
    assert report.readings == [
        ["last round · best round · mean of the last 2", "s=0", "s=2", "s=4"],
        ["FedAU", *(f"{gains} (8.0 of 10 classes)" for gains in GAINS)],
    ]
    said = (
        "Of 3 cells match: 2 by the last round, 1 by the best round, 1 by the mean of the last 2."
    )
    assert said in report.notes
    assert said in plain(report)
    assert "| FedAU | 2.00 · 1.00 · 1.00 (8.0 of 10 classes) |" in markdown(report, "mine")


def test_a_line_for_each_cell(report, tmp_path) -> None:
    paths = keep(report, tmp_path / "kept")
    with open(paths[2], encoding="utf-8", newline="") as file:
        cells = list(csv.DictReader(file))
    assert len(cells) == 12
    (mine,) = (c for c in cells if (c["s"], c["method"], c["seed"]) == ("s=4", "FedAU", "1"))
    assert (mine["final"], mine["best"], mine["tail"]) == ("45.0", "72.0", "37.5")
    assert (mine["status"], mine["classes_covered"], mine["seconds"]) == ("done", "8", "60.0")


def test_seeds_that_were_asked_for_are_said(report) -> None:
    assert "Scale *paper*: the paper's full setting. In" in markdown(report, "mine")
    fewer = report._replace(request=report.request._replace(seeds=1))
    assert "scale paper: the paper's full setting. Here: 1 seed, by --seeds" in plain(fewer)
    assert "--scale paper --seeds 1`" in markdown(fewer, "mine")


def test_where_it_comes_from(report) -> None:
    (code,) = {fingerprint(c) for c in cells(report.item, "paper") if c.point[METHOD] == "FedAU"}
    assert report.origin.cells == 12
    assert report.origin.seconds == 12 * 60
    assert code in report.origin.code
    told = str(report.origin)
    assert told.startswith("12 cells, 12.0 minutes of one process in all; turnout 1.0, python 1.0")
    assert "data: digits abc" in told
