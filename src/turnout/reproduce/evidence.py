"""What an item's numbers are made of: one line a cell, small enough to be kept beside a table."""

from collections.abc import Sequence
from typing import Any

from turnout.reproduce.run import Played
from turnout.reproduce.values import ALWAYS, value


def as_cells(played: Sequence[Played], tail: int) -> list[dict[str, Any]]:
    """Each cell's labels, outcome, cost, the name of its configuration and that of its code."""
    return [_line(each, tail) for each in played]


def _line(played: Played, tail: int) -> dict[str, Any]:
    record = played.record
    line: dict[str, Any] = {**played.point, "seed": played.seed}
    line |= {"status": record["status"], "rounds": record.get("round")}
    if "classes" in record and record["metrics"]:
        line |= {name: round(value(name, record, tail), 4) for name in ALWAYS}
        line["classes_covered"] = record["classes_covered"]
    seconds = record["seconds"] + record["evaluating"]
    return line | {"seconds": round(seconds, 1), "key": record["key"], "code": record.get("code")}
