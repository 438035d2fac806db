"""The command line: what it prints, what it leaves, and how it answers bad input."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow
import pytest
from pyarrow import parquet
from tests.experiments.worlds import file

from turnout import __version__
from turnout.cli import main

CHECKOUT = Path(__file__).resolve().parent.parent


class Answer(NamedTuple):
    code: int
    out: str
    err: str


@pytest.fixture
def turnout(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """Call the command line in this process, in an empty folder."""
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delenv("TURNOUT_DATA", raising=False)

    def call(*arguments: str | Path) -> Answer:
        with pytest.raises(SystemExit) as exit:
            main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        assert isinstance(exit.value.code, int)
        return Answer(exit.value.code, captured.out, captured.err)

    return call


def write_trace(folder: Path, *rows: str) -> Path:
    path = folder / "log.csv"
    path.write_text("client,available_from_s,available_until_s\n" + "\n".join(rows) + "\n")
    return path


def write_data(folder: Path, label: str = "label", value: float = 1.0) -> Path:
    """A tiny data set of two features in the Hub's layout, one of whose values is `value`."""
    data = folder / "data" / "tiny"
    data.mkdir(parents=True)
    features = np.arange(40, dtype=np.float64)
    features[7] = value
    columns = {"a": features, "b": features[::-1].copy(), label: np.arange(40) % 2}
    for split in ("train", "test"):
        parquet.write_table(pyarrow.table(columns), data / f"{split}.parquet")
    return data


TINY = ["data.features=['a', 'b']", "data.partition={name = 'iid', clients = 10}"]

BAD = {
    "an unknown algorithm": (
        ["algorithm.0.name=fedkep"],
        "algorithm.0.name 'fedkep' is not known; did you mean 'fedkeep'?",
    ),
    "an unknown option of an algorithm": (
        ["algorithm.1.cutof=3"],
        "algorithm.1.cutof is not an option of 'fedau' or a setting of [local]; did you mean 'cutoff'?",
    ),
    "an unknown field": (
        ["run.rouns=3"],
        "run.rouns is not a key of the configuration; did you mean",
    ),
    "an unknown section": (["particpation={}"], "did you mean 'participation'?"),
    "an unknown process": (["participation.process=bernouli"], "did you mean 'bernoulli'?"),
    "an unknown option of a process": (["participation.q=1"], "participation.q is not an option"),
    "an unknown partition": (["data.partition.name=shard"], "did you mean 'shards'?"),
    "an unknown model": (["model.name=perceptro"], "did you mean 'perceptron'?"),
    "an unknown data set": (["data.name=mnits"], "did you mean 'mnist'?"),
    "an unknown engine": (["run.engine=referense"], "did you mean 'reference'?"),
    "an unknown augmentation": (["data.augmentation=crops"], "did you mean 'crop'?"),
    "an unknown loss": (["model.loss=cross"], "did you mean 'cross_entropy'?"),
    "p above 1": (["participation.p=1.2"], "participation: p is 1.2; it must be a probability"),
    "p below 0": (["participation.p=-0.1"], "p is -0.1"),
    "p of one client above 1": (
        ["participation.p=[0.1, 0.1, 0.1, 3, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1]"],
        "p of client 3 is 3.0",
    ),
    "p for another number of clients": (["participation.p=[0.1, 0.2]"], "length of p is 2"),
    "p that is no number": (["participation.p=often"], "participation.p is 'often'; it must be"),
    "p = 0 where 1/p is asked for": (
        ["algorithm.0.name=known", "algorithm.0.p=[0, 1, 1, 1, 1, 1, 1, 1, 1, 1]"],
        "p[0] is 0; it must be above 0",
    ),
    "unknown rates where 1/p is asked for": (
        ["participation={process = 'step_drift', p = 0.5, at = 3}", "algorithm.0.name=known"],
        "algorithm.0 (known) needs p",
    ),
    "K below 1": (["algorithm.fedau.cutoff=0"], "algorithm.1 (fedau): cutoff is 0; it must be"),
    "q above 1": (["algorithm.0.name=safari", "algorithm.0.q=1.5"], "(safari): q is 1.5; it must"),
    "q below 0": (["algorithm.0.name=safari", "algorithm.0.q=-1"], "(safari): q is -1.0; it must"),
    "P below 1": (["algorithm.0.name=amplified", "algorithm.0.period=0"], "period is 0; it must"),
    "m above N": (
        ["participation={process = 'uniform', per_round = 11}"],
        "per_round is 11; it must be a whole number from 1 to 10",
    ),
    "more sampled than there are": (["participation.sampled=11"], "participation: per_round is 11"),
    "more absent than there are": (["participation.absent=10"], "participation: absent is 10"),
    "everybody absent by class": (
        ["participation.absent_classes=9"],
        "absent is 'every client'; it must be fewer",
    ),
    "more classes absent than there are": (
        ["participation.absent_classes=10"],
        "absent_classes is 10; it must be from 1 to 9",
    ),
    "more classes a client than classes": (
        ["data.partition.classes_each=11"],
        "classes a client is 11; it must be from 1 to the 10 classes there are",
    ),
    "more clients than samples": (
        ["data.partition={name = 'iid', clients = 100000}"],
        "clients is 100000; it must be from 1 to the number of samples",
    ),
    "a partition without clients": (
        ["data.partition={name = 'iid'}"],
        "data.partition.clients is missing",
    ),
    "no partition": (['data.partition="none"'], "data: partition is missing"),
    "a natural partition without a column": (
        ["data.partition={name = 'natural'}"],
        "partition 'natural' needs a client-id column",
    ),
    "an auxiliary set larger than the data": (
        ["data.auxiliary.size=99999"],
        "data: size of the auxiliary set is 99999; it must be from 1 to",
    ),
    "assistance without server data": (
        ["algorithm.0.name=safari", 'data.auxiliary="none"'],
        "auxiliary data of the server is none; safari with q = 0.8 must have some",
    ),
    "a module that cannot be imported": (
        ["model.name=no_such_package:Net"],
        "model 'no_such_package:Net' cannot be imported",
    ),
    "a recipe that cannot be imported": (
        ["algorithm.0.name=no_such_package:method"],
        "algorithm.0.name is 'no_such_package:method', which cannot be imported",
    ),
    "a recipe that is no function": (["algorithm.0.name=math:pi"], "is not a function"),
    "both steps and epochs": (["local={steps = 2, epochs = 1}"], "steps"),
    "two algorithms of one label": (
        ["algorithm.0.label=x", "algorithm.1.label=x"],
        "2 algorithms are called 'x'",
    ),
    "an option without its method": (
        ["algorithm.0.inner=mifa"],
        "algorithm.0.inner is not an option of 'fedavg'",
    ),
    "a wrapper as a process": (["participation.process=lossy"], "give the key lost beside"),
    "p and rates": (["participation.rates={}"], "p is 0.5; it must be left out where rates"),
    "rates for a process that takes none": (
        ["participation={process = 'always', rates = {}}"],
        "process 'always' takes no p",
    ),
    "a given mask that is too short": (
        ["participation={process = 'given', mask = [[1, 1, 1, 1, 1, 1, 1, 1, 1, 1]]}"],
        "beyond the given mask, which has 1 rounds",
    ),
}


@pytest.mark.parametrize(("changes", "sentence"), BAD.values(), ids=BAD.keys())
def test_bad_input_is_one_sentence_and_exit_code_2(
    turnout, tmp_path: Path, changes: list[str], sentence: str
) -> None:
    refused(turnout("run", file(tmp_path), *sets(changes), "--out", "out"), sentence)


def sets(changes: list[str]) -> list[str]:
    return [word for change in changes for word in ("--set", change)]


def refused(answer: Answer, sentence: str) -> None:
    """It is refused in one sentence, and nothing was begun."""
    assert answer.code == 2
    assert answer.out == ""
    assert answer.err.startswith("turnout: ")
    assert answer.err.count("\n") == 1
    assert sentence in answer.err
    assert not Path("out").exists()


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        (["0,0,60", "0,30,90"], "available_from_s in"),
        (["0,60,0"], "available_until_s in"),
        (["0,-60,0"], "it must be at least 0"),
        (["99,0,60"], "clients is 10; it must be a whole number of at least 100"),
        (["0,noon,60"], "line 2, is 'noon'; it must be a finite number"),
        ([], "the number of intervals in"),
    ],
)
def test_bad_traces(turnout, tmp_path: Path, rows: list[str], sentence: str) -> None:
    path = write_trace(tmp_path, *rows)
    config = file(tmp_path, [f"participation={{process = 'trace', path = '{path}', round_s = 60}}"])
    refused(turnout("run", config, "--out", "out"), sentence)


def test_a_data_folder_without_the_columns(turnout, tmp_path: Path) -> None:
    write_data(tmp_path, label="answer")
    changes = [*TINY, "data.name=tiny", f"data.folder='{tmp_path / 'data'}'"]
    answer = turnout(
        "run", file(tmp_path), *sets([*changes, 'data.auxiliary="none"']), "--out", "out"
    )
    refused(answer, "label")
    assert "answer" in answer.err  # what there is instead


def test_nan_in_data(turnout, tmp_path: Path) -> None:
    write_data(tmp_path, value=float("nan"))
    changes = [*TINY, "data.name=tiny", f"data.folder='{tmp_path / 'data'}'"]
    answer = turnout(
        "run", file(tmp_path), *sets([*changes, 'data.auxiliary="none"']), "--out", "out"
    )
    refused(answer, "row 7")


def test_good_data_of_ones_own_run(turnout, tmp_path: Path) -> None:
    write_data(tmp_path)
    changes = [*TINY, "data.name=tiny", f"data.folder='{tmp_path / 'data'}'"]
    answer = turnout(
        "run", file(tmp_path), *sets([*changes, 'data.auxiliary="none"']), "--out", "out"
    )
    assert answer.code == 0


def test_syntax_errors_and_missing_files(turnout, tmp_path: Path) -> None:
    refused(turnout("run", tmp_path / "none.toml"), "none.toml cannot be read: No such file")
    refused(turnout("run", tmp_path), "cannot be read: Is a directory")
    (tmp_path / "broken.toml").write_text("[run\n")
    refused(turnout("run", tmp_path / "broken.toml"), "line 1")


def test_an_out_directory_that_cannot_be_written(turnout, tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("a file")
    answer = turnout("run", file(tmp_path), "--out", tmp_path / "taken" / "run")
    refused(answer, "cannot be written: Not a directory")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["lsit"], "command 'lsit' is not known; did you mean 'list'?"),
        (["run"], "Missing argument 'FILE'"),
        (["run", "x.toml", "--sett", "a=b"], "No such option"),
        (["list", "algorithm"], "'algorithm' is not one of"),
        (["run", "x.toml", "y.toml"], "unexpected extra argument"),
    ],
)
def test_bad_arguments(turnout, arguments: list[str], sentence: str) -> None:
    refused(turnout(*arguments), sentence)


def test_a_run_prints_an_aligned_table_and_says_where_everything_is(
    turnout, tmp_path: Path
) -> None:
    answer = turnout("run", file(tmp_path), "--out", "out")
    assert answer.code == 0
    engine, where = answer.err.splitlines()  # and no progress where nobody looks
    why = "the model's gradients are known by hand; 2 small cells trained together"
    assert engine == f"Engine batched: {why}"
    assert where == "Metrics and models: out"
    rule, one, two = answer.out.splitlines()[-3:]
    assert set(rule) == {"-"}
    assert one.startswith("fedavg  ")
    assert two.startswith("fedau   ")
    assert one.index("±") == two.index("±")
    assert Path("out/summary.md").exists()


def test_set_changes_fields_and_engine_is_a_shorthand(turnout, tmp_path: Path) -> None:
    given = ["--set", "run.rounds=3", "--set", "algorithm.fedau.cutoff=2", "--engine", "reference"]
    assert turnout("run", file(tmp_path), *given, "--out", "out").code == 0
    status = json.loads(Path("out/cells/fedau/seed-0/status.json").read_text(encoding="utf-8"))
    assert status["rounds"] == 3
    assert status["engine"] == "reference"
    assert "cutoff=2" in status["method"]


def test_json_is_all_that_stdout_gets(turnout, tmp_path: Path) -> None:
    answer = turnout("run", file(tmp_path), "--json", "--out", "out")
    report = json.loads(answer.out)
    assert [line["algorithm"] for line in report["summary"]] == ["fedavg", "fedau"]
    assert report["diverged"] == []


def test_quiet_says_nothing(turnout, tmp_path: Path) -> None:
    assert turnout("run", file(tmp_path), "--quiet", "--out", "out") == (0, "", "")


def test_a_diverged_run_is_exit_code_1_with_a_sentence_and_a_table(turnout, tmp_path: Path) -> None:
    changes = ["algorithm.0.lr=1.0", "algorithm.0.schedule={factors = [0.1, 1e38], until = [2]}"]
    answer = turnout("run", file(tmp_path, [*changes, "run.seeds=[0]"]), "--out", "out")
    assert answer.code == 1
    assert "turnout: fedavg diverged in round" in answer.err
    assert "Traceback" not in answer.err
    *_, one, two = answer.out.splitlines()
    assert "diverged" in one
    assert "diverged" not in two


def test_a_recipe_beside_the_user_is_found(turnout, tmp_path: Path) -> None:
    Path("beside_me.py").write_text(
        "from turnout.algorithms import fedavg\n"
        "def half(local):\n"
        "    return fedavg(server_lr=0.5, local=local)\n"
    )
    answer = turnout("run", file(tmp_path, ["algorithm.0.name='beside_me:half'"]), "--out", "out")
    assert answer.code == 0
    assert "half" in answer.out


def test_version_and_help(turnout) -> None:
    assert turnout("--version").out == f"turnout {__version__}\n"
    shown = turnout("--help")
    assert shown.code == 0
    assert turnout() == shown
    for example in (
        "turnout demo",
        "turnout run examples/safari_mnist.toml",
        "turnout list algorithms",
    ):
        assert example in shown.out
    assert len(shown.out.splitlines()) <= 30
    assert "turnout schema" in turnout("run", "--help").out


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        ("algorithms", ["fedavg", "average_all", "known", "fedau", "amplified", "safari", "mifa"]),
        ("participation", ["bernoulli", "markov", "cyclic", "trace", "absent", "lost", "sampled"]),
        ("datasets", ["digits", "mnist", "cinic10", "quadratics", "least_squares"]),
        ("models", ["logistic", "perceptron", "cnn", "package.module:Name"]),
    ],
)
def test_list_names_everything_with_options_and_a_summary(
    turnout, kind: str, names: list[str]
) -> None:
    answer = turnout("list", kind)
    assert answer.code == 0
    assert all(name in answer.out for name in names)
    items = json.loads(turnout("list", kind, "--json").out)
    assert all(item["summary"] for item in items)


def test_list_shows_defaults_as_a_file_says_them(turnout) -> None:
    rows = [line.split() for line in turnout("list", "algorithms").out.splitlines()]
    (fedau,) = [row for row in rows if row[0] == "fedau"]
    assert fedau[1:3] == ["cutoff=50,", "decay=none,"]


def test_schema_describes_every_field(turnout) -> None:
    from turnout.experiments.schema import tables

    shown = turnout("schema").out
    for table in tables():
        assert table.heading in shown
        for field in table.fields:
            assert field.description, f"{table.heading} {field.key}"
            assert field.key in shown
    schema = json.loads(turnout("schema", "--json").out)
    assert "cutoff" in schema["options"]["algorithm"]["fedau"]["properties"]


def test_the_demo_runs_small(turnout) -> None:
    small = ["--set", "run.rounds=4", "--set", "run.seeds=[0, 1]", "--set", "run.plots=false"]
    answer = turnout("demo", *small, "--out", "out")
    assert answer.code == 0
    for label in (
        "average participating",
        "known p",
        "FedAU",
        "MIFA",
        "FedVARP",
        "FedAU with SAFARI",
    ):
        assert f"\n{label}  " in answer.out
    assert "Over the last 4 rounds FedAU reaches" in answer.out


def test_help_does_not_wait_for_torch() -> None:
    code = (
        "import sys\nfrom turnout.cli import status\nstatus(['--help'])\nstatus(['--version'])\n"
        "slow = {'torch', 'numpy', 'pydantic', 'matplotlib', 'pyarrow'} & set(sys.modules)\n"
        "sys.exit(f'imported {slow}' if slow else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_module_is_the_command_and_pipes_may_close(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(CHECKOUT / "src")}
    command = [sys.executable, "-m", "turnout", "list", "participation"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment, cwd=tmp_path
    ) as process:
        assert process.stdout is not None
        process.stdout.close()  # as `head` does
        assert process.stderr is not None
        assert b"Traceback" not in process.stderr.read()


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("turnout re", ["report", "reproduce"]),
        ("turnout run --e", ["--engine"]),
        ("turnout list ", ["algorithms", "participation", "datasets", "models"]),
        ("turnout reproduce --sc", ["--scale"]),  # of a command that is fetched from elsewhere
    ],
)
def test_shells_complete_commands_options_and_choices(
    turnout, monkeypatch: pytest.MonkeyPatch, words: str, offered: list[str]
) -> None:
    monkeypatch.setenv("_TURNOUT_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", str(len(words.split(" ")) - 1))
    answer = turnout()
    assert (answer.code, answer.err) == (0, "")
    assert answer.out.split() == offered


def test_the_citation_names_this_version() -> None:
    citation = (CHECKOUT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {__version__}\n" in citation
