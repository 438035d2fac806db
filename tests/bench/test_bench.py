"""The benchmarks: work is counted rightly, everybody gets a turn, and tables say what was measured."""

import pytest
import torch

from turnout.bench.contestants import CONTESTANTS, Contestant
from turnout.bench.measure import Measured, Plan, Timing, measure
from turnout.bench.population import bookkeeping
from turnout.bench.report import ratios, table
from turnout.bench.workloads import WORKLOADS
from turnout.cli import status
from turnout.simulator import advance, begin


@pytest.mark.parametrize(
    ("key", "steps", "flops"),
    [
        # 784·10 weights, a product forwards and one backwards, two operations a weight and sample.
        ("a", 94, 5 * 6000 * 7840 * 2 * 2),
        # The first layer needs no gradient of its inputs, the second does.
        ("c", 5, 25 * 80 * (784 * 64 * 2 + 64 * 10 * 3) * 2),
    ],
)
def test_work_is_counted_as_by_hand(key: str, steps: int, flops: int) -> None:
    assert WORKLOADS[key].steps == steps
    assert WORKLOADS[key].flops() == pytest.approx(flops, rel=1e-9)


def test_a_workload_is_a_simulation_of_just_these_steps() -> None:
    workload = WORKLOADS["c"]
    simulation = workload.simulation("batched")
    happened = advance(simulation, begin(simulation))
    steps = simulation.training.steps(workload.local, happened.delivered)
    assert steps.sum() == workload.client_steps == 125


def test_contestants_take_turns_and_the_best_counts(capfd: pytest.CaptureFixture[str]) -> None:
    names = ["turnout, batched", "turnout, reference, 1 thread"]
    found = measure(WORKLOADS["c"], names, Plan(turns=2, seconds=0.01), lambda _: None)
    ours, reference = found.timings
    assert not ours.trouble
    assert not reference.trouble
    assert len(ours.turns) == len(reference.turns) == 2
    assert ours.best == min(ours.turns) > 0
    assert ours.memory > 50e6  # Python and torch, at least
    assert found.best_of("reference") is reference


def _timing(name: str, seconds: list[float], trouble: str = "") -> Timing:
    return Timing(CONTESTANTS[name], seconds, 2**30, trouble=trouble)


def test_ratios_are_between_each_sides_best() -> None:
    timings = [
        _timing("turnout", [0.02, 0.01]),
        _timing("pfl, 1 thread", [0.08, 0.09]),
        _timing("pfl", [0.07, 0.2]),
        _timing("Flower simulation", [], "not installed: ray"),
    ]
    found = Measured(WORKLOADS["a"], 10**9, 10**12, timings)
    assert ratios([found]) == [
        "(a) turnout takes 1/7.0 of the time of pfl: 10.0 ms a round against 70.0 (at most 1/5 was "
        "meant: reached)."
    ]
    rows = {row[0]: row[1:] for row in table(found)}
    assert rows["turnout"] == ["10.0", "47,000", "10 %", "1,024 MB", "1.00"]
    assert rows["pfl"][-1] == "7.00"
    assert rows["Flower simulation"][0] == "not installed: ray"


def test_what_is_not_installed_is_said_and_the_others_play(monkeypatch) -> None:
    absent = Contestant("absent", "pfl", lambda _: None, needs=("no_such_package",))
    monkeypatch.setitem(CONTESTANTS, "absent", absent)
    found = measure(WORKLOADS["c"], ["absent"], Plan(1, 0.01), lambda _: None)
    assert found.timings[0].trouble == "not installed: no_such_package"
    assert ratios([found]) == []


def test_rounds_cost_what_participants_do_and_not_what_the_population_does() -> None:
    small, large = bookkeeping(10_000, 10), bookkeeping(1_000_000, 10)
    assert large.bytes_each <= 40
    # A hundred times as many clients, the same thousand participants; generous, for busy machines.
    assert large.of_a_thousand < 30 * small.of_a_thousand
    assert large.mask + large.weights < 0.1


def test_an_unknown_workload_is_a_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    assert status(["bench", "ax"]) == 2
    assert "workload 'x' is not known" in capsys.readouterr().err


def test_the_profile_accounts_for_all_of_the_time() -> None:
    from turnout.bench.profiled import where_time_goes

    shares = dict(where_time_goes(WORKLOADS["c"], 0.01))
    assert shares["products"] > 0
    assert sum(shares.values()) <= 1.01
    assert torch.get_num_threads() == 1
