"""A small experiment that tests change as they need."""

from collections.abc import Sequence
from pathlib import Path

from turnout.experiments.config import Config
from turnout.experiments.read import change, configure, parse

SMALL = """
[run]
rounds = 6
seeds = [0, 1]
evaluate_every = 2
plots = false

[data]
partition = { name = "shards", clients = 10, classes_each = 2 }
auxiliary = { size = 40 }

[participation]
process = "bernoulli"
p = 0.5

[[algorithm]]
name = "fedavg"

[[algorithm]]
name = "fedau"
"""


def small(*changes: str) -> Config:
    """The small experiment, changed by section.key=value texts."""
    return configure(change(parse(SMALL), changes))


def file(folder: Path, changes: Sequence[str] = (), text: str = SMALL) -> Path:
    """The same as a file."""
    from turnout.experiments.toml import dumps

    path = folder / "small.toml"
    path.write_text(dumps(change(parse(text), changes)), encoding="utf-8")
    return path
