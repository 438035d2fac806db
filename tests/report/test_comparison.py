"""The report of run directories: what it says and shows, and that it merges several."""

from pathlib import Path

import pytest
from tests.experiments.worlds import small

from turnout.errors import InputError
from turnout.experiments.results import Results, read_results
from turnout.experiments.run import run_experiment
from turnout.report.comparison import report, write_report
from turnout.report.page import Bullets, Page, Picture, Section, Table, Text, html

CHANGES = ["participation.absent=2", "algorithm.1.label=FedAU, K → ∞"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("runs") / "one"
    run_experiment(small(*CHANGES), out)
    return out


@pytest.fixture(scope="module")
def results(folder: Path) -> Results:
    return read_results(folder)


@pytest.fixture(scope="module")
def page(results: Results) -> Page:
    return report([results])


def section(page: Page, heading: str) -> Section:
    return next(each for each in page.sections if each.heading == heading)


def test_the_lead_says_what_was_compared(page: Page) -> None:
    assert page.lead.startswith("2 methods, 2 seeds, 6 rounds; digits, 10 clients, participation ")
    assert "than the spread over seeds" in page.lead


def test_the_table_is_the_summary_with_memory_and_what_is_sent(page: Page) -> None:
    (table,) = [p for p in section(page, "Summary").parts if isinstance(p, Table)]
    fedavg, fedau = table.rows
    assert [fedavg[0], fedau[0]] == ["fedavg", "FedAU, K → ∞"]
    at = dict(zip(table.heads, fedavg, strict=True))
    assert at["server memory MB"] == "–"
    assert dict(zip(table.heads, fedau, strict=True))["server memory MB"] != "–"
    assert float(at["sent a round MB"].split()[0]) > 0


def test_there_is_a_figure_for_each_question(page: Page) -> None:
    figures = {
        each.heading: sum(isinstance(part, Picture) for part in each.parts)
        for each in page.sections
    }
    assert figures == {
        "Summary": 0,
        "Over the rounds": 2,
        "Who took part": 2,
        "What clients count for": 2,
        "Who is served": 4,
        "Settings and versions": 0,
    }
    assert page.toggles == ["fedavg", "FedAU, K → ∞"]


def test_settings_and_versions_are_at_the_foot(page: Page) -> None:
    foot = html(page)[-20_000:]
    assert "classes_each = 2" in foot
    assert "torch" in foot


def test_several_directories_stand_side_by_side_and_what_differs_is_said(
    results: Results, tmp_path: Path
) -> None:
    other = run_experiment(small("participation.p=0.2", "algorithm.1.name=mifa"), tmp_path / "two")
    both = report([results, other.results])
    assert both.toggles == ["fedavg (one)", "FedAU, K → ∞", "fedavg (two)", "mifa"]
    said = [part for part in section(both, "Summary").parts if isinstance(part, Bullets)]
    assert "participation.p was 0.5 and is 0.2" in said[1].items[0]
    # Two worlds, so two heat maps and two plots of rates.
    assert len(section(both, "Who took part").parts) == 4


def test_a_run_that_has_not_ended_is_shown_as_far_as_it_is(folder: Path, tmp_path: Path) -> None:
    import json
    import shutil

    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    status = next(copy.glob("cells/fedavg/seed-0/status.json"))
    status.write_text(json.dumps({**json.loads(status.read_text()), "status": "running"}))
    for name in ("clients.csv", "classes.csv", "participation.parquet"):
        status.with_name(name).unlink()
    made = report([read_results(copy)])
    said = [part for part in section(made, "Summary").parts if isinstance(part, Bullets)]
    assert said[0].items[0].startswith("fedavg, seed 0: running, ")
    assert html(made)


def test_a_folder_that_is_no_run_is_refused_in_a_sentence(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is not a run directory"):
        write_report([tmp_path])
    with pytest.raises(InputError, match="given twice"):
        write_report([folder, folder])


def test_a_report_goes_beside_its_run_or_where_it_is_wanted(folder: Path, tmp_path: Path) -> None:
    assert write_report([folder]) == folder / "report.html"
    assert write_report([folder], tmp_path / "page.html").read_text().startswith("<!doctype html>")


def test_problems_without_classes_have_a_report_too(tmp_path: Path) -> None:
    config = small(
        "data={name = 'quadratics', z = [[0.0], [4.0]]}", "participation={process = 'always'}"
    )
    made = report([run_experiment(config, tmp_path / "out").results])
    assert not any(
        isinstance(part, Text) and "None" in part.text for s in made.sections for part in s.parts
    )
    assert "test loss" in html(made)
