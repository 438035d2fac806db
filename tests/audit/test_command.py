"""`turnout audit` from its arguments to what it prints and writes."""

import csv
import json
import re
from html import escape
from pathlib import Path

import pytest
import typer
from rich.cells import cell_len
from typer.testing import CliRunner

from turnout.audit.command import audit_command
from turnout.errors import InputError

app = typer.Typer()
app.command()(audit_command)


@pytest.fixture
def phones(shared_data: Path) -> str:
    return str(shared_data / "traces" / "phones300.csv")


def run(*arguments: str, width: int = 100) -> str:
    result = CliRunner().invoke(app, list(arguments), env={"COLUMNS": str(width)})
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.output


def test_phones(phones: str, tmp_path: Path) -> None:
    """What the trace is known for: a daily pattern, three phones never seen, strong heterogeneity."""
    found = json.loads(run(phones, "--json", "--out", str(tmp_path)))
    assert found["process"]["name"] == "daily"
    period = found["process"]["period"]
    assert period["low"] <= 144 <= period["high"], "a day of rounds of ten minutes"
    assert found["federation"]["never_listed"] == 3
    assert found["federation"]["mean_rate"] == pytest.approx(0.16, abs=0.01)
    assert found["federation"]["gini"] > 0.4
    assert found["impact"]["total_variation"] > 2 * found["impact"]["by_chance"]
    assert found["advice"]["method"]["name"] == "fedau"
    assert {test["null"] for test in found["process"]["tests"] if test["rejected"]} == {
        "rounds are independent",
        "no cycle",
        "no change of rates",
    }
    assert json.loads((tmp_path / "audit.json").read_text()) == found
    with open(tmp_path / "clients.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 300
    assert all(float(r["rate_low"]) <= float(r["rate"]) <= float(r["rate_high"]) for r in rows)
    assert (tmp_path / "experiment.toml").is_file()
    made = (tmp_path / "audit.html").read_text()
    assert escape(found["verdict"]) in made
    assert "Participation audit: phones300.csv" in made


@pytest.mark.parametrize("seconds", [300, 1800, 3600])
def test_the_day_shows_whatever_the_round(phones: str, seconds: int) -> None:
    found = json.loads(run(phones, "--json", "--round-length", str(seconds)))
    assert found["process"]["name"] == "daily"
    assert found["process"]["period"]["rounds"] * seconds == pytest.approx(86400, rel=0.01)


def test_on_a_terminal(phones: str) -> None:
    printed = run(phones)
    for words in (
        "daily           chances rise",
        "non-stationary  besides, chances change",
        "never seen",
        "3 without any entry",
        "FedAU (cutoff =",
        "P = 144",
    ):
        assert words in printed
    assert max(map(cell_len, printed.splitlines())) <= 100


def test_the_documentation_shows_what_is_printed(phones: str) -> None:
    printed = [line.rstrip() for line in run(phones, width=84).splitlines()]
    page = (Path(__file__).parents[2] / "docs" / "audit.md").read_text()
    shown = re.findall(
        r'^```text title="turnout audit phones300.csv"\n(.*?)^```$', page, re.M | re.S
    )
    assert len(shown) == 5
    for block in shown:
        assert block in "\n".join(printed) + "\n"


def test_with_classes(tmp_path: Path) -> None:
    log, classes = tmp_path / "log.csv", tmp_path / "classes.csv"
    often = "\n".join(f"{t},0,1" for t in range(40))
    log.write_text(f"round,client,delivered\n{often}\n7,1,1\n9,1,0\n21,1,1\n30,1,1\n")
    classes.write_text("client,cat,dog\n0,10,0\n1,0,10\n")
    printed = run(str(log), "--classes", str(classes), "--intended", "samples")
    assert "at risk" in printed
    assert "2.3 % of those asked never delivered" in printed


def test_a_folder_that_cannot_be_written_is_refused_before_the_work(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(
        InputError, match=r"--out .*file cannot be written: .*; it must be a folder"
    ):
        run(str(tmp_path / "no-such-log.csv"), "--out", str(tmp_path / "file"))


def test_bad_input(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        run(str(tmp_path / "none.csv"))
    log = tmp_path / "log.csv"
    log.write_text("round,client\n0,1\n")
    for arguments in (["--parameters", "0"], ["--round-length", "-1"], ["--intended", "samples"]):
        with pytest.raises(InputError):
            run(str(log), *arguments)
