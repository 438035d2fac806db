"""One writer a run directory, and no lock outlives its holder."""

import subprocess
import sys
from pathlib import Path

import pytest

from turnout.errors import InputError
from turnout.experiments.lock import locked

HOLD = """
import sys, time
from pathlib import Path
from turnout.experiments.lock import locked
with locked(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""


def test_a_second_writer_is_told_who_the_first_is(tmp_path: Path) -> None:
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(InputError, match=f"in use by process {holder.pid};"), locked(tmp_path):
            pass
    finally:
        holder.kill()
        holder.communicate()
    with locked(tmp_path):  # The holder was killed, and its lock with it.
        pass


def test_a_lock_is_free_again_after_an_error(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), locked(tmp_path):
        raise ZeroDivisionError
    with locked(tmp_path):
        pass
