"""A hundred thousand clients and ten thousand rounds, within 30 s of processor time and 2 GB."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow
import pytest
from pyarrow import csv

SCRIPT = """
import resource, sys, time
from turnout.audit.audit import audit
found = audit(sys.argv[1])
print(len(found.history.round), time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


@pytest.mark.slow
def test_a_large_log(tmp_path: Path) -> None:
    draw = np.random.default_rng(0)
    counts = draw.binomial(10_000, draw.beta(0.5, 50, 100_000))
    client = np.repeat(np.arange(100_000), counts)
    order = draw.permutation(len(client))
    table = {"round": draw.integers(0, 10_000, len(client)), "client": client[order]}
    csv.write_csv(pyarrow.table(table), tmp_path / "log.csv")
    printed = subprocess.run(
        [sys.executable, "-c", SCRIPT, tmp_path / "log.csv"],
        env={**os.environ, "PYTHONPATH": "src"},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    number, seconds, kilobytes = map(float, printed.split())
    assert number > 9e6
    assert seconds < 30
    assert kilobytes < 2e6
