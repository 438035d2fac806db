"""Seconds a round against Flower's own FedAvg: the same app, the same SuperNodes, in turn."""

import json
import os
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("flwr", reason="flwr is not installed: pip install 'turnout[flower]'")

from tests.flower.network import network

RACE = Path(__file__).parent / "race"
ROUNDS, TIMES = 8, 3


@pytest.mark.slow
def test_a_round_costs_no_more_than_a_tenth_above_flowers_fedavg(tmp_path: Path) -> None:
    """With checkpoints, the log, weights and validation on our side, and on theirs nothing."""
    with network(tmp_path, 4) as net:
        for _ in range(TIMES):
            for strategy in ("fedavg", "turnout"):
                run = net.run(RACE, strategy=strategy, rounds=ROUNDS, out=tmp_path)
                run.wait(timeout=900)
    lines = [json.loads(line) for line in (tmp_path / "times.jsonl").read_text().splitlines()]
    # The first round has the start-up in it: greetings on our side, waiting for nodes on theirs.
    rounds = {
        name: np.concatenate([np.diff(x["times"])[2:] for x in lines if x["strategy"] == name])
        for name in ("fedavg", "turnout")
    }
    said = {
        name: f"{np.median(s):.2f} s (quartiles {np.quantile(s, 0.25):.2f}, {np.quantile(s, 0.75):.2f})"
        for name, s in rounds.items()
    }
    if "TURNOUT_OVERHEAD" in os.environ:
        Path(os.environ["TURNOUT_OVERHEAD"]).write_text(json.dumps(said) + "\n")
    assert all(len(s) == TIMES * (ROUNDS - 1) for s in rounds.values())
    assert np.median(rounds["turnout"]) <= 1.1 * np.median(rounds["fedavg"]), said
