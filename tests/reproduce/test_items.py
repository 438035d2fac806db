"""Every item at smoke scale, and every item's files at all scales."""

import csv

import pytest

from turnout.experiments.methods import methods
from turnout.reproduce.grid import cells
from turnout.reproduce.item import SCALES, catalogue, find
from turnout.reproduce.kinds import reproduce
from turnout.reproduce.report import keep, plain
from turnout.reproduce.request import Request

ITEMS = [(paper, name) for paper, known in catalogue().items() for name in known]
TRAINED = [(p, n) for p, n in ITEMS if find(p, n)[0].about.kind != "impossibility"]


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """One cache for all items, as they share cells."""
    return tmp_path_factory.mktemp("cells")


@pytest.mark.parametrize(("paper", "name"), ITEMS)
def test_smoke(paper, name, kept, tmp_path) -> None:
    (item,) = (each for each in find(paper, name) if each.name == name)
    report = reproduce(Request(item, "smoke", None, kept))
    paths = keep(report, tmp_path)
    head, *body = report.shown
    assert body
    assert all(len(row) == len(head) for row in body)
    assert item.about.title in plain(report)
    assert f"turnout reproduce {paper} {name}" in paths[0].read_text(encoding="utf-8")
    with open(paths[1], encoding="utf-8", newline="") as file:
        assert len(list(csv.DictReader(file))) == len(report.rows) > 0
    drawn = {path.suffix for path in paths if path.suffix not in (".md", ".csv")}
    assert drawn == ({".png", ".svg"} if item.about.kind not in ("table", "search") else set())
    assert all(path.stat().st_size > 1000 for path in paths if path.suffix in drawn)


@pytest.mark.parametrize(("paper", "name"), TRAINED)
@pytest.mark.parametrize("scale", SCALES)
def test_every_cell_of_every_scale_is_a_sound_experiment(paper, name, scale) -> None:
    (item,) = (each for each in find(paper, name) if each.name == name)
    found = cells(item, scale, seeds=1)
    assert found
    for cell in found:
        assert list(methods(cell.config))  # checks options of methods and local settings
    if scale == "paper":
        every = {label for cell in found for label in cell.point.values()}
        for kind in item.about.also:
            assert kind in every


@pytest.mark.parametrize(("paper", "name"), TRAINED)
def test_printed_rows_are_rows_of_the_table(paper, name) -> None:
    """A row of numbers under a label that no cell has would never be compared."""
    (item,) = (each for each in find(paper, name) if each.name == name)
    if item.about.kind not in ("table", "curves", "lines", "spread"):
        pytest.skip("lays out its own table")
    found = cells(item, "paper", seeds=1)
    rows = {" · ".join(cell.point[axis] for axis in item.about.rows) for cell in found}
    assert set(item.printed) <= rows
    across = [axis for axis in item.about.columns if axis != "value"]
    columns = {tuple(cell.point[axis] for axis in across) for cell in found}
    wide = len(item.about.values) or len(columns)
    assert all(len(numbers) == wide for numbers in item.printed.values())
