"""Where an item's numbers come from: how long they took, with which software, code and data."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from turnout.experiments.directory import versions
from turnout.reproduce.play import Record
from turnout.reproduce.run import Played

SOFTWARE = ("turnout", "python", "torch", "numpy")


class Origin(NamedTuple):
    seconds: float
    """Of training and evaluation, each cell once."""
    cells: int
    software: str
    code: tuple[str, ...]
    """Fingerprints of the code: one for each set of methods that cells use."""
    data: str

    def __str__(self) -> str:
        if not self.cells:
            return f"Nothing is trained; {self.software}."
        took = f"{self.cells} cells, {self.seconds / 60:.1f} minutes of one process in all"
        return f"{took}; {self.software}; data: {self.data}; code: {', '.join(self.code)}."


def origin(played: Sequence[Played] = ()) -> Origin:
    """Of these results; without any, of what has just been computed."""
    records = list({p.record["key"]: p.record for p in played}.values())
    found = [record["versions"] for record in records] or [versions()]
    return Origin(
        sum(float(record["seconds"] + record["evaluating"]) for record in records),
        len(records),
        ", ".join(f"{name} {_all(v[name] for v in found)}" for name in SOFTWARE),
        tuple(sorted({str(record.get("code")) for record in records})),
        _all(_data(record) for record in records),
    )


def _data(record: Record) -> str:
    return f"{record['config']['data']['name']} {record.get('data', 'unknown')}"


def _all(values: Iterable[object]) -> str:
    return " and ".join(sorted({str(value) for value in values}))
