"""Waiting for what a run in another process writes."""

import subprocess
import time
from glob import glob
from pathlib import Path


def wait_for_checkpoints(process: "subprocess.Popen[str]", out: Path, cells: int = 1) -> None:
    """Until so many cells of the run in `out` have a checkpoint."""
    until = time.monotonic() + 120
    # The module's glob, unlike pathlib's, minds no folder that goes while it looks.
    while len({Path(path).parent for path in glob(f"{out}/**/round-*", recursive=True)}) < cells:
        assert process.poll() is None
        assert time.monotonic() < until
        time.sleep(0.01)
