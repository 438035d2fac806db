"""An item: one table or figure of a paper as a file that reads like it.

The file is an experiment as `turnout run` takes it, and beside it: [item] (what it is and how it
is shown), [[grid]] (what varies over its cells), [paper] (the printed numbers), and what the
smaller scales change.
"""

from collections.abc import Mapping
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any, Literal, NamedTuple

from pydantic import Field

from turnout.errors import InputError, choose
from turnout.experiments.config import Config, Section
from turnout.experiments.read import Table, parse, validated

Kind = Literal[
    "table",
    "curves",
    "lines",
    "spread",
    "panels",
    "weights",
    "search",
    "impossibility",
    "leaderboard",
]
BOARD = "leaderboard"
"""In place of a paper: what no paper prints."""
PAPERS = ("safari", "fedau", "amplified", BOARD)
SCALES = ("paper", "laptop", "smoke")
METHOD = "method"
"""The axis that every experiment has: its [[algorithm]] tables, by their labels."""
WARM_UP = "warm-up"
"""What stands on that axis for the rounds that all methods go on from."""


class About(Section):
    """[item]: what it is and how it is shown."""

    title: str
    kind: Kind = "table"
    note: str = Field(default="", description="what a reader of the paper should know")
    value: str = Field(default="best", description="which of our values stands beside the paper's")
    values: dict[str, str] = Field(
        default={}, description="several values side by side, by label: the axis `value`"
    )
    unit: str = "test accuracy (%)"
    gain_over: str | None = Field(default=None, description="show differences to this method")
    rows: list[str] = Field(default=[METHOD], description="axes that run down")
    columns: list[str] = Field(default=[], description="axes that run across")
    first: str = Field(default="", description="the row that the paper has ahead of all others")
    close: float = Field(default=1.5, description="numbers this close match")
    x: str = Field(default="", description="the figure's axis")
    log_x: bool = False
    also: dict[str, list[str]] = Field(
        default={}, description="section.key=value for the cells of one method alone"
    )


class Axis(Section):
    """[[grid]]: something that varies over the cells."""

    axis: str
    set: str | None = Field(default=None, description="the key that takes each of the values")
    values: list[Any] | dict[str, list[str]] = Field(
        description="values of the key; or labels, each with its section.key=value texts"
    )

    def changes(self) -> dict[str, list[str]]:
        """What each value, by its label, changes in the experiment."""
        if isinstance(self.values, dict):
            return self.values
        return {f"{self.axis}={v}": [f"{self.set}={_text(v)}"] for v in self.values}


def _text(value: Any) -> str:
    return f'"{value}"' if isinstance(value, str) else str(value)


class Scale(Section):
    """[laptop] and [smoke]: what they change, and so what differs from the paper."""

    says: str = Field(default="the paper's full setting", description="what differs")
    set: list[str] = Field(default=[], description="section.key=value")
    seeds: list[int] | None = None
    warm_up: int | None = Field(default=None, description="rounds of the warm-up")
    only: dict[str, list[str]] = Field(default={}, description="labels that are kept of an axis")
    judge: Literal["values", "order"] = Field(
        default="values", description="order: other data or models, so only the ranking compares"
    )


class WarmUp(Section):
    """[warm_up]: rounds of one method, from whose model all others go on, on the same clock."""

    rounds: int
    algorithm: str = "fedavg"
    set: list[str] = Field(default=[], description="section.key=value")


class Item(NamedTuple):
    paper: str
    name: str
    about: About
    experiment: Table
    grid: list[Axis]
    printed: Mapping[str, list[Any]]
    """The paper's numbers: a row each by its label, across the columns in their order."""
    scales: Mapping[str, Scale]
    warm_up: WarmUp | None
    settings: Table
    """[settings]: of kinds that train nothing."""

    @property
    def title(self) -> str:
        return f"{self.paper} {self.name}"


def read_item(paper: str, name: str, text: str) -> Item:
    """The item that this text describes."""
    table = parse(text, f"{paper}/{name}.toml")
    experiment = {key: table.pop(key) for key in Config.model_fields if key in table}
    scales = {name: validated(Scale, table.pop(name, {}), name) for name in SCALES}
    warm_up = table.pop("warm_up", None)
    item = Item(
        paper,
        name,
        validated(About, table.pop("item"), "item"),
        experiment,
        [validated(Axis, axis, f"grid.{k}") for k, axis in enumerate(table.pop("grid", []))],
        table.pop("printed", {}),
        scales,
        None if warm_up is None else validated(WarmUp, warm_up, "warm_up"),
        table.pop("settings", {}),
    )
    if table:
        raise InputError(
            f"{paper}/{name}.toml has the table {next(iter(table))!r}; nothing reads it"
        )
    return item


def catalogue() -> dict[str, dict[str, Traversable]]:
    """The files of all items, by paper and name."""
    folder = files("turnout.reproduce") / "papers"
    return {
        paper: {
            file.name.removesuffix(".toml"): file
            for file in sorted((folder / paper).iterdir(), key=_order)
            if file.name.endswith(".toml")
        }
        for paper in PAPERS
    }


def _order(file: Traversable) -> tuple[str, int, str]:
    """table-2 before table-10."""
    words = file.name.removesuffix(".toml").split("-")
    number = words[1] if len(words) > 1 else ""
    return words[0], int(number) if number.isdecimal() else 0, file.name


def every(paper: str) -> list[Item]:
    """All items of a paper."""
    return [item for name in catalogue()[paper] for item in find(paper, name) if item.name == name]


def find(paper: str, name: str) -> list[Item]:
    """The item of this name, or all parts of it: table-1 is table-1-mnist and table-1-cifar10."""
    known = catalogue()[choose("paper", paper, PAPERS)]
    found = [each for each in known if each == name or each.startswith(f"{name}-")]
    if not found:
        choose("item", name, known)
    return [read_item(paper, each, known[each].read_text(encoding="utf-8")) for each in found]
