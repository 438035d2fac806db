"""How long people wait before anything happens. In seconds of the processor, since machines are busy.

The aims are 1.5 s for the import beyond torch's own and 3 s to the end of the first round; the
bounds here are twice that, so that they fail for what somebody has done and not for the weather.
"""

import resource
import subprocess
import sys
from pathlib import Path

IMPORT = """
import time
import torch
began = time.process_time()
import turnout
print(time.process_time() - began)
"""
BARE = "import torch"
EXPERIMENT = """
[run]
rounds = 1
plots = false
[data]
name = "digits"
partition = { name = "dirichlet", clients = 20, alpha = 0.3 }
[participation]
process = "bernoulli"
p = 0.5
[model]
name = "perceptron"
[[algorithm]]
name = "fedau"
"""


def seconds(*command: str) -> tuple[float, str]:
    """Of the processor, for a command, and what it printed."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    return used, done.stdout


def test_importing_turnout_takes_little_beyond_torch() -> None:
    took = min(float(seconds(sys.executable, "-c", IMPORT)[1]) for _ in range(2))
    assert took < 3.0


def test_the_first_round_comes_soon(tmp_path: Path) -> None:
    file = tmp_path / "experiment.toml"
    file.write_text(EXPERIMENT)
    bare = min(seconds(sys.executable, "-c", BARE)[0] for _ in range(2))
    command = [sys.executable, "-m", "turnout", "run", str(file), "--out"]
    whole = min(seconds(*command, str(tmp_path / str(n)))[0] for n in range(2))
    assert whole - bare < 6.0
