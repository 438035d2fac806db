"""Means over seeds, who leads, and how tables look."""

from dataclasses import replace
from pathlib import Path
from statistics import mean, stdev

import pytest

from turnout.experiments.findings import findings
from turnout.experiments.results import Result
from turnout.experiments.summary import COLUMNS, Line, Summary, _line, ahead, as_json, leader
from turnout.experiments.table import as_csv, fitting, markdown, plain


def result(label: str, seed: int, *accuracies: float, status: str = "done") -> Result:
    metrics = [
        {
            "round": 10 * (k + 1),
            "test_accuracy": a,
            "train_loss": 1 - a,
            "spread_accuracy": 0.1,
            "never_seen_accuracy": a / 2,
        }
        for k, a in enumerate(accuracies)
    ]
    rounds = 10 * len(accuracies)
    return Result(label, seed, status, rounds, False, metrics, 0.5, [], [], Path())


def summary(*cells: Result, tail: int = 20) -> Summary:
    labels = dict.fromkeys(cell.label for cell in cells)
    lines = [_line(label, [c for c in cells if c.label == label], tail) for label in labels]
    present = {key for line in lines for key in line.entries}
    return Summary(tail, [column for column in COLUMNS if column.key in present], lines)


def column(key: str) -> object:
    return next(column for column in COLUMNS if column.key == key)


CLEAR = summary(
    result("low", 0, 0.5, 0.60, 0.62),
    result("low", 1, 0.5, 0.61, 0.63),
    result("high", 0, 0.5, 0.80, 0.78),
    result("high", 1, 0.5, 0.82, 0.80),
)


def test_final_tail_and_best_are_what_they_say() -> None:
    (line,) = [line for line in CLEAR.lines if line.label == "high"]
    assert line.entries["final"].mean == pytest.approx(79.0)
    assert line.entries["tail"].mean == pytest.approx(100 * mean([0.79, 0.81]))
    assert line.entries["best"].mean == pytest.approx(81.0)
    assert line.entries["final"].std == pytest.approx(stdev([78.0, 80.0]))
    assert line.entries["seconds"].mean == pytest.approx(1000 * 0.5 / 30)


def test_the_leader_is_best_by_more_than_the_spread() -> None:
    leaders = {column.key: leader(CLEAR, column) for column in CLEAR.columns}
    assert leaders["final"] == leaders["tail"] == leaders["best"] == "high"
    assert leaders["train_loss"] == "high"  # where less is better
    assert leaders["spread"] is None  # a tie
    assert leaders["seconds"] is None


def test_within_the_spread_nobody_leads() -> None:
    close = summary(
        result("a", 0, 0.50), result("a", 1, 0.60), result("b", 0, 0.53), result("b", 1, 0.61)
    )
    assert all(leader(close, column) is None for column in close.columns)


def test_one_seed_has_no_spread_and_no_leader() -> None:
    single = summary(result("a", 0, 0.9), result("b", 0, 0.1))
    assert all(leader(single, column) is None for column in single.columns)
    assert "90.0" in plain(single)
    assert "±" not in plain(single)


def test_diverged_seeds_are_left_out_and_counted() -> None:
    some = summary(result("a", 0, 0.5), result("a", 1, 0.1, status="diverged"), result("b", 0, 0.4))
    line = some.lines[0]
    assert line.diverged == [1]
    assert line.entries["final"].mean == pytest.approx(50.0)
    assert "a (1 of 2 seeds)" in plain(some)
    none = summary(result("a", 0, 0.5, status="diverged"), result("b", 0, 0.4))
    assert none.lines[0].entries == {}
    assert "diverged" in plain(none)


def test_plain_tables_are_aligned() -> None:
    lines = plain(CLEAR).splitlines()
    rule = next(place for place, line in enumerate(lines) if set(line) == {"-"})
    low, high = lines[rule + 1 :]
    assert high.startswith("high  79.0 ±1.4*  80.0 ±1.4*  81.0 ±1.4*")
    assert [k for k, c in enumerate(low) if c == "±"] == [k for k, c in enumerate(high) if c == "±"]
    assert "final test acc. %" in " ".join(
        word for line in lines[:rule] for word in line[:18].split()
    )


def test_narrow_tables_drop_columns_but_keep_the_story() -> None:
    keys = [column.key for column in fitting(CLEAR, 46)]
    assert "tail" in keys
    assert "never_seen" in keys
    assert "best" not in keys
    assert max(map(len, plain(CLEAR, 46).splitlines())) <= 46


def test_markdown_has_the_leader_in_bold() -> None:
    rows = markdown(CLEAR).splitlines()
    assert rows[1].startswith("| --- | --: |")
    assert rows[2].startswith("| low | 62.5 ±0.7 |")
    assert rows[3].startswith("| high | **79.0 ±1.4** |")


def test_csv_and_json_have_full_precision() -> None:
    head, low, _ = as_csv(CLEAR).splitlines()
    assert head.startswith("algorithm,diverged,final_mean,final_std,final_seeds,tail_mean")
    assert low.split(",")[:2] == ["low", "0"]
    assert float(low.split(",")[2]) == pytest.approx(62.5)
    assert as_json(CLEAR)[1]["final"]["mean"] == pytest.approx(79.0)


def demo(fedau: float, never: float) -> Summary:
    cells = []
    for seed, wobble in enumerate((-0.01, 0.01)):
        cells += [
            result("average participating", seed, 0.70 + wobble),
            result("FedAU", seed, fedau + wobble),
            result("SAFARI", seed, never + wobble),
        ]
    return summary(*cells)


def test_findings_follow_the_numbers_either_way() -> None:
    better, worse = findings(demo(0.80, 0.9)), findings(demo(0.695, 0.3))
    assert "FedAU reaches 80.0 % and average participating 70.0 %: 10.0 points more" in better[0]
    assert "more than the spread over seeds (1.4)" in better[0]
    assert "0.5 points less, which is within the spread" in worse[0]
    assert (
        "no method without the server's data gets more than 40.0 % right; SAFARI gets 45.0 %"
        in (better[1])
    )
    assert "no method with the server's data gets more right (15.0 %)" in worse[1]


def test_findings_need_the_methods_they_speak_of() -> None:
    assert findings(summary(result("a", 0, 0.5))) == []


def test_a_line_without_any_result_is_still_a_line() -> None:
    empty = Summary(10, [COLUMNS[0]], [Line("a", 1, [0], {})])
    assert "diverged" in plain(empty)


def test_those_in_front_are_named_together_where_they_are_too_close_to_tell() -> None:
    cells = [
        *(result("low", seed, 0.50 + 0.01 * seed) for seed in (0, 1)),
        *(result("one", seed, 0.80 + 0.02 * seed) for seed in (0, 1)),
        *(result("two", seed, 0.81 + 0.02 * seed) for seed in (0, 1)),
    ]
    assert ahead(summary(*cells), column("final")) == ["two", "one"]
    assert ahead(CLEAR, column("final")) == ["high"]
    between = [result("between", seed, 0.66 + 0.2 * seed) for seed in (0, 1)]
    assert ahead(summary(*cells, *between), column("final")) == ["two", "one", "between"]
    wide = [result("wide", seed, 0.4 + 0.4 * seed) for seed in (0, 1)]
    assert ahead(summary(*cells, *wide), column("final")) == []
    assert ahead(summary(result("a", 0, 0.5), result("b", 0, 0.9)), column("final")) == []


def test_what_is_the_same_in_every_seed_by_nature_has_no_spread_in_tables() -> None:
    cells = [result("a", 0, 0.5), result("a", 1, 0.5)]
    costly = [
        replace(c, costs={"server": 2_000_000, "client": 0, "down": 1, "up": 1}) for c in cells
    ]
    text = plain(summary(*costly))
    assert "50.0 ±0.0" in text
    assert " 2.000\n" in text
