"""`turnout theory …`: every calculator can be called, in words and in JSON."""

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from turnout.errors import InputError
from turnout.theory import fedau, safari
from turnout.theory.command import PAPERS, app
from turnout.theory.constants import Constants

ARGUMENTS = {
    "alpha": "0.4",
    "a": "0",
    "assistance-lr": "0.01",
    "b": "1",
    "beta": "1",
    "client-gradient": "1",
    "client-samples": "100",
    "clients": "10",
    "constants": "",
    "convexity": "0.5",
    "cutoff": "50",
    "dimension": "3",
    "distance": "2",
    "divergence": "1",
    "gap": "2",
    "high": "0.8",
    "kind": "independent",
    "local-steps": "5",
    "low": "0.2",
    "lr": "0.001",
    "noise": "1",
    "p": "0.5",
    "participating": "6",
    "per-round": "2",
    "per-window": "1",
    "period": "10",
    "q": "0.8",
    "rho": "0.5",
    "round": "60",
    "rounds": "1000",
    "server-gradient": "1",
    "server-lr": "1",
    "server-samples": "20",
    "smoothness": "1",
    "weight-error": "0.01",
    "weight-square": "2",
    "window": "0.1",
}
CALCULATORS = [
    (paper, c.__name__.replace("_", "-")) for paper, (_, cs) in PAPERS.items() for c in cs
]


def _run(*words: str):  # type: ignore[no-untyped-def]
    return CliRunner().invoke(app, list(words), env={"COLUMNS": "200"})


@pytest.mark.parametrize(("paper", "name"), CALCULATORS)
def test_every_calculator_runs_from_the_command_line(paper: str, name: str, tmp_path: Path) -> None:
    usage = _run(paper, name, "--help").output
    words = [paper, name]
    for option, value in ARGUMENTS.items():
        if f"--{option} " in usage:
            words += [f"--{option}", value]
    if "--mask" in usage:
        np.savetxt(tmp_path / "mask.csv", np.tile(np.eye(4), (10, 1)), "%d", delimiter=",")
        words += ["--mask", f"@{tmp_path / 'mask.csv'}"]
    if "--gradients" in usage:
        (tmp_path / "gradients.csv").write_text("1\n0\n0\n-1\n")
        words += ["--gradients", f"@{tmp_path / 'gradients.csv'}"]
    said = _run(*words)
    assert said.exit_code == 0, said.output + str(said.exception)
    assert said.output.strip()
    parsed = json.loads(_run(*words, "--json").output)
    assert parsed


def test_what_is_said_is_what_the_function_returns() -> None:
    words = "safari theorem-4 --smoothness 1 --gap 1 --q 0.5 --local-steps 2 --per-round 3"
    words += " --assistance-lr 0.01 --rounds 100 --server-gradient 1 --client-gradient 2"
    expected = safari.theorem_4(Constants(smoothness=1, gap=1), 0.5, 2, 3, 0.01, 100, 1, 2)
    assert _run(*words.split()).output.strip() == str(expected)
    words = "fedau b-4-4 --smoothness 1 --gap 1 --local-steps 2 --lr 0.01 --server-lr 1 --rounds 9"
    bound = fedau.b_4_4(Constants(smoothness=1, gap=1), 2, 0.01, 1, 9, [0.5, 0.25], [1, 2])
    said = _run(*words.split(), "--p", "0.5, 0.25", "--weights", "1,2", "--json")
    assert json.loads(said.output)["value"] == bound.value


def test_rates_may_come_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "rates.csv").write_text("0.5\n0.1\n0.0\n")
    said = _run("fedau", "theorem-1", "--p", f"@{tmp_path / 'rates.csv'}", "--json")
    assert json.loads(said.output)["missing"] == pytest.approx(1 / 3)


def test_infinity_is_null_in_json() -> None:
    words = "fedau corollary-4-steps --smoothness 1 --gap 1 --clients 3 --local-steps 1"
    said = _run(*words.split(), "--weight-square", "1", "--rounds", "10", "--json")
    assert None in json.loads(said.output)[1]["limits"].values()


@pytest.mark.parametrize(
    ("p", "message"),
    [
        ("0.1,x", "numbers separated by commas"),
        ("@nowhere.csv", "numbers separated by commas, or @FILE"),
        ("0.5,1.5", "p of client 1 is 1.5"),
    ],
)
def test_bad_input_is_an_input_error(p: str, message: str) -> None:
    error = _run("fedau", "theorem-1", "--p", p).exception
    assert isinstance(error, InputError)
    assert message in str(error)
