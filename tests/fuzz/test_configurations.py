"""Whatever an experiment file says, the command runs it or answers in a sentence, and writes nothing."""

import tempfile
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import event
from hypothesis import strategies as some
from tests.fuzz.bend import WORDS, few_or_a_thousand, in_time, text, tried

from turnout.cli import status
from turnout.experiments import run as running

DIGITS = """
# an experiment
[run]
rounds = 6
seeds = [0, 1]
evaluate_every = 2
engine = "reference"
dtype = "float64"
checkpoint_seconds = 0.5

[data]
name = "digits"
partition = { name = "dirichlet", clients = 10, alpha = 0.3 }
auxiliary = { size = 40, shared = true }
shares = "samples"

[participation]
process = "markov"
rates = { alpha = 0.1, mean = 0.4, floor = 0.1 }
sampled = 4
absent = [1, 2]
lost = 0.1

[model]
name = "perceptron"
hidden = [8, 4]

[local]
lr = 0.05
steps = 3
batch_size = 8
momentum = 0.5
schedule = { factors = [1.0, 0.5], until = [3] }

[[algorithm]]
name = "fedau"
cutoff = 50

[[algorithm]]
name = "amplified"
label = "two of them"
period = 4
factor = 1.5
inner = { name = "mifa", memory = "client" }
"""

QUADRATICS = """
[run]
rounds = 3
[data]
name = "quadratics"
z = [[0.0, 1.0], [1.0, 0.0], [2.0, 2.0]]
[participation]
process = "cyclic"
p = [0.5, 0.25, 1.0]
period = 4
[model]
start = [1.0, 1.0]
[[algorithm]]
name = "known"
[[algorithm]]
name = "fedvarp"
clusters = [0, 0, 1]
"""

SQUARES = """
[run]
rounds = 3
threads = 1
[data]
name = "least_squares"
clients = 5
dim = 3
samples = 4
noise = 0.5
[participation]
process = "given"
mask = [[1, 0, 1, 1, 0], [0, 1, 1, 0, 0], [1, 1, 1, 1, 1]]
[[algorithm]]
name = "safari"
q = 1.0
inner = { name = "scaffold" }
"""

KEYS = ["run.rounds", "data.partition.clients", "algorithm.0.cutoff", "local.lr", "participation.p"]
KEYS += ["run", "", "a.b.c", "algorithm.fedau.decay", "algorithm.9.x", "data.name", "model.hidden"]


class Begun(Exception):  # noqa: N818 - no error
    """All has been checked, and the first file would be written now."""


@pytest.fixture(autouse=True)
def nothing_is_played(monkeypatch: pytest.MonkeyPatch) -> None:
    def begun(*_: object) -> Path:
        raise Begun

    monkeypatch.setattr(running, "create", begun)


def asked(content: bytes, changes: list[str]) -> tuple[int | None, list[Path]]:
    """The command's exit code, None where it would begin to play; and what lies around then."""
    with tempfile.TemporaryDirectory() as folder:
        file, out = Path(folder) / "experiment.toml", Path(folder) / "out"
        file.write_bytes(content)
        words = [word for change in changes for word in ("--set", change)]
        code: int | None = None
        with in_time(), suppress(Begun):
            code = status(["run", str(file), "--out", str(out), *words])
        return code, [path for path in Path(folder).rglob("*") if path != file]


@few_or_a_thousand
def test_a_file_is_an_experiment_or_a_sentence(
    inputs: int, capsys: pytest.CaptureFixture[str]
) -> None:
    codes = []
    setting = some.tuples(some.sampled_from(KEYS), some.sampled_from(WORDS)).map("=".join)

    @tried(
        inputs,
        content=some.sampled_from([DIGITS, QUADRATICS, SQUARES]).flatmap(text),
        changes=some.just([]) | some.lists(setting, max_size=2),
    )
    def check(content: bytes, changes: list[str]) -> None:
        code, written = asked(content, changes)
        said = capsys.readouterr()
        codes.append(code)
        event("taken" if code is None else "refused in a sentence")
        assert not written
        assert not said.out
        if code is not None:
            assert code == 2
            assert said.err.startswith("turnout: ")
            assert said.err.count("\n") == 1

    assert set(codes) == {None, 2}
