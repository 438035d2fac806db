"""Verdicts, by hand."""

import pytest

from turnout.reproduce.judge import Entry, Printed, ahead, counts, judged, printed
from turnout.reproduce.values import Measured, value


def entry(ours, paper, row="a", column="x", std=None):
    return Entry(row, column, Measured(ours, std, 1 if std is None else 5), printed(paper))


def one(*entries, signed=False, values=True, **rest):
    found = judged(entries, signed, values, **rest)[0]
    return found.verdict, found.why


def test_what_a_file_may_print() -> None:
    assert printed(57.05) == Printed(57.05)
    assert printed([57, 0.3]) == Printed(57.0, 0.3)
    assert printed("<2") == Printed(2.0, below=True)
    assert printed("none") is None
    assert [str(printed(p)) for p in (57.05, [57, 0.3], "<2")] == ["57.05", "57 ±0.3", "<2"]


def test_matches() -> None:
    assert one(entry(58.5, 57.0)) == ("matches", "")
    assert one(entry(60.0, 57.0, std=2.0)) == ("differs", "+3")
    assert one(entry(60.0, 57.0, std=3.0)) == ("matches", "by the spread")
    assert one(entry(60.0, [57.0, 1.0], std=2.0)) == ("matches", "by the spread")
    assert one(entry(57.5, 57.0), points=0.1) == ("differs", "+0.5")


def test_the_order_within_row_and_column() -> None:
    mine = entry(50, 60)
    below, above = entry(40, 55, row="b"), entry(70, 65, column="y")
    elsewhere = entry(90, 10, row="b", column="y")
    assert one(mine, below, above, elsewhere) == ("same order", "-10")
    assert one(mine, below, above, elsewhere, values=False) == ("same order", "")
    wrong = entry(52, 55, row="b")
    assert one(mine, wrong, above) == ("differs", "-10; below b, unlike the paper")
    near = entry(52, 59, row="b")  # a gap of the paper's below 1.5 points is no order
    assert one(mine, near, above) == ("same order", "-10")
    other_kind = entry(40, 65, column="y")
    assert one(mine, below, other_kind, across=False)[0] == "same order"


def test_without_anything_to_order_there_is_no_verdict_on_order() -> None:
    assert one(entry(50, 60), values=False) == ("", "")
    assert one(entry(50, None)) == ("", "")


@pytest.mark.parametrize(
    ("ours", "paper", "verdict"),
    [(30, 31, "matches"), (20, 31, "same order"), (-2, 31, "differs"), (3.4, "<2", "matches"),
     (-1, "<2", "matches"), (4.5, "<2", "same order"), (6, "<2", "differs")],
)  # fmt: skip
def test_gains(ours, paper, verdict) -> None:
    assert one(entry(ours, paper), signed=True)[0] == verdict


def test_who_is_ahead() -> None:
    rows = [entry(80, None), entry(79, None, row="b"), entry(82, None, row="c")]
    assert [(e.verdict, e.why) for e in ahead(rows, "a")] == [
        ("", ""), ("same order", ""), ("differs", "ahead of a by 2, unlike the paper"),
    ]  # fmt: skip
    across = [entry(80, None), entry(79, None, column="y"), entry(90, None, row="b"),
              entry(95, None, row="b", column="y")]  # fmt: skip
    assert [e.verdict for e in ahead(across, "x")] == ["", "same order", "", "differs"]
    assert counts(ahead(rows, "a")) == {"matches": 0, "same order": 1, "differs": 1}


def test_values_of_a_record() -> None:
    curve = [(1, 0.5), (2, 0.9), (3, 0.6), (4, 0.8)]
    record = {
        "status": "done",
        "metrics": [{"round": r, "test_accuracy": a} for r, a in curve] + [{"round": 5}],
        "classes": [0.1] * 10,
        "clients": [{"loss": 1.0, "accuracy": 0.5}, {"loss": 3.0, "accuracy": 0.7}],
    }
    assert value("final", record, 2) == pytest.approx(80)
    assert value("best", record, 2) == pytest.approx(90)
    assert value("tail", record, 2) == pytest.approx(70)
    assert value("spread_loss", record, 2) == pytest.approx(1)
    assert value("spread_train", record, 2) == pytest.approx(10)
    assert value("best", record | {"status": "diverged"}, 2) == 10
