"""What all tests share: one thread, no display, settings of hypothesis, and the real data sets."""

import os
import signal

# One thread each: tests run side by side, and sums then come out the same on every machine.
# Set before numpy and torch are imported, and inherited by the processes that tests start.
os.environ["OMP_NUM_THREADS"] = "1"
os.environ["MPLBACKEND"] = "Agg"

from pathlib import Path

import pytest
import torch
from hypothesis import HealthCheck, settings

# Started in the background, as by nohup, a shell has Ctrl-C ignored, and so would all that tests start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

torch.set_num_threads(1)  # a plugin may have imported torch before us

# Time limits would make tests depend on who else uses the machine.
patient = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("dev", **patient)
settings.register_profile("ci", **patient, derandomize=True, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "dev")

CHECKOUT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of the real data sets: TURNOUT_DATA, or ../shared/data beside the checkout."""
    folder = Path(os.environ.get("TURNOUT_DATA") or CHECKOUT.parent / "shared" / "data")
    if not folder.is_dir():
        pytest.skip(f"no real data sets in {folder}; TURNOUT_DATA may name another folder")
    return folder
