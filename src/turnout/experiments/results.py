"""What cells left in a run directory, read back."""

import csv
import json
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from turnout.errors import InputError
from turnout.experiments.config import Config
from turnout.experiments.read import configure
from turnout.participation import Log, load

Row = dict[str, float | None]


@dataclass(frozen=True)
class Result:
    """One cell."""

    label: str
    seed: int
    status: str
    """"running", "done" or "diverged"."""
    round: int
    """Rounds that were played to the end."""
    memory: bool
    """Whether past updates stand in for absent clients, so that weights are not the whole story."""
    metrics: list[dict[str, Any]]
    seconds: float
    """Of training, without evaluation."""
    clients: list[Row]
    classes: list[Row]
    folder: Path
    costs: dict[str, int] = field(default_factory=dict)
    """Bytes, as `turnout.costs.Costs` names them."""
    engine: str = ""
    """Which one trained, and why."""

    def curve(self, metric: str) -> tuple[list[int], list[float]]:
        """Rounds and values of one metric, where it was measured."""
        points = [(m["round"], m[metric]) for m in self.metrics if m.get(metric) is not None]
        return [r for r, _ in points], [v for _, v in points]

    def log(self) -> Log | None:
        path = self.folder / "participation.parquet"
        return load(path) if path.exists() else None


class Results(NamedTuple):
    """A run directory."""

    folder: Path
    config: Config
    cells: list[Result]

    def labels(self) -> list[str]:
        return list(dict.fromkeys(cell.label for cell in self.cells))

    def of(self, label: str) -> list[Result]:
        return [cell for cell in self.cells if cell.label == label]


def read_results(folder: Path) -> Results:
    """All cells of a run directory, in the order of its algorithms and seeds."""
    try:
        config = configure(tomllib.loads((folder / "config.toml").read_text(encoding="utf-8")))
        cells = [read_cell(path.parent) for path in sorted(folder.glob("cells/*/*/status.json"))]
    except OSError as error:
        raise InputError(f"{folder} is not a run directory: {error}") from error
    order = [(section.label, seed) for section in config.algorithm for seed in config.run.seeds]
    cells.sort(key=lambda cell: order.index((cell.label, cell.seed)))
    return Results(folder, config, cells)


def read_cell(folder: Path) -> Result:
    """One cell's folder; what it has not written yet is empty."""
    status = json.loads((folder / "status.json").read_text(encoding="utf-8"))
    timing = _lines(folder / "timing.jsonl")
    return Result(
        status["algorithm"],
        status["seed"],
        status["status"],
        status["round"],
        status["memory"],
        _lines(folder / "metrics.jsonl"),
        float(timing[-1]["seconds"]) if timing else 0.0,
        _table(folder / "clients.csv"),
        _table(folder / "classes.csv"),
        folder,
        status.get("costs", {}),
        f"{status.get('engine', '')}: {status.get('why', '')}",
    )


def _lines(path: Path) -> list[dict[str, Any]]:
    if not path.exists():
        return []
    # A line that is still being written has no end yet.
    text = path.read_text(encoding="utf-8")
    return [json.loads(line) for line in text[: text.rfind("\n") + 1].splitlines()]


def _table(path: Path) -> list[Row]:
    if not path.exists():
        return []
    with open(path, encoding="utf-8", newline="") as file:
        return [
            {key: float(value) if value else None for key, value in row.items()}
            for row in csv.DictReader(file)
        ]
