"""Weights that grow out of proportion are said, once, with the clients whose they are."""

from pathlib import Path

import numpy as np
import pytest
from tests.experiments.worlds import small

from turnout.experiments.heavy import Heavy
from turnout.experiments.run import run_experiment
from turnout.simulator import Round


def happened(round: int, *weights: float) -> Round:
    rows = np.arange(len(weights))
    return Round(round, "clients", rows, rows, np.array(weights))


def test_each_client_is_named_when_its_weight_first_passes_the_bound(
    caplog: pytest.LogCaptureFixture,
) -> None:
    heavy = Heavy("fedau, seed 0")
    heavy.note(happened(3, 1.0, 40.0, 2.0, 1.0), 4)
    assert not caplog.messages
    heavy.note(happened(4, 1.0, 41.0, 2.0, 90.0), 4)
    heavy.note(happened(5, 50.0, 42.0, 2.0, 91.0), 4)
    heavy.note(happened(6, 51.0, 43.0, 2.0, 92.0), 4)
    first, second = caplog.messages
    assert first.startswith("fedau, seed 0, round 4: the weight of client 1, 3 is 90, more than 10")
    assert second.startswith("fedau, seed 0, round 5: the weight of client 0 is 91")


@pytest.mark.parametrize(("cutoff", "named"), [("inf", True), ("5", False)])
def test_without_a_cutoff_a_client_that_hardly_ever_comes_is_named(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, cutoff: str, named: bool
) -> None:
    """Client 1 comes in rounds 0, 100 and 101, the other one always: its weight becomes 50."""
    came = [[1, int(t in (0, 100, 101))] for t in range(102)]
    config = small(
        "run.seeds=[0]",
        "run.rounds=102",
        "run.evaluate_every=102",
        "local.lr=0.001",
        "data.partition={name='iid', clients=2}",
        f"participation={{process='given', mask={came}}}",
        f"algorithm.1.cutoff={cutoff}",
    )
    run_experiment(config, tmp_path)
    said = [message for message in caplog.messages if "a cutoff bounds weights" in message]
    assert bool(said) == named
    for message in said:
        assert message.startswith("fedau, seed 0, round 101: the weight of client 1 is 50.5, more")
