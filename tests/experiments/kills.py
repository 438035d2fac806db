"""Processes that are killed at random moments.

They are forked from one process that has everything imported, since otherwise a kill would cost a
start of Python. That process has never computed anything, so it has one thread, and can be forked.
"""

import json
import os
import random
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

CHECKOUT = Path(__file__).resolve().parents[2]
Job = dict[str, Any]
Tell = Callable[[int], None]


# In the test --------------------------------------------------------------------------------------


class Killer:
    """Has jobs done in processes, and kills these."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self.process = process

    def __call__(self, job: Job, after: int, delay: float) -> bool:
        """Kill it `delay` seconds after round `after`; false if it was done before that."""
        code = self._ask({**job, "after": after, "delay": delay})
        assert code in (0, -signal.SIGKILL), f"it failed by itself: {code}"
        return code != 0

    def let(self, job: Job) -> None:
        """Let it end."""
        assert self._ask({**job, "after": None, "delay": 0.0}) == 0

    def _ask(self, order: Job) -> int | str:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(order) + "\n")
        self.process.stdin.flush()
        code: int | str = json.loads(self.process.stdout.readline())
        return code


@contextmanager
def killer() -> Iterator[Killer]:
    command = [sys.executable, "-m", "tests.experiments.kills"]
    process = subprocess.Popen(
        command,
        cwd=CHECKOUT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "OMP_WAIT_POLICY": "PASSIVE"},  # others need the core
    )
    try:
        yield Killer(process)
    finally:
        process.kill()
        process.communicate()


def moments(dice: random.Random, last: int) -> Iterator[tuple[int, float]]:
    """After which round, and how many seconds later: at the start, between rounds, at the end."""
    done = 0
    while True:
        match dice.choices(["start", "middle", "end"], [3, 16, 1])[0]:
            case "start":
                yield 0, dice.uniform(0, 0.2)
            case "middle":
                done = (done + dice.randint(1, 5)) % last
                yield done, dice.uniform(0, 0.02)
            case "end":
                yield last, dice.uniform(0, 0.05)


# In the other process -----------------------------------------------------------------------------


def _experiment(job: Job, tell: Tell) -> None:
    from turnout.experiments.read import read
    from turnout.experiments.run import run_experiment

    def watch(cell: object, happened: Any, metrics: object) -> None:
        tell(happened.round + 1)

    run_experiment(read(Path(job["file"])), Path(job["out"]), watch, resume=True)


def _reproduction(job: Job, tell: Tell) -> None:
    from turnout.reproduce import play
    from turnout.reproduce.grid import cells
    from turnout.reproduce.item import read_item
    from turnout.reproduce.run import play_all

    play.SAVE_EVERY = 0.0
    item = read_item("safari", "mine", Path(job["file"]).read_text())
    play_all(cells(item, "paper"), Path(job["out"]), tell=lambda done, rounds: tell(done))


KINDS = {"experiment": _experiment, "reproduction": _reproduction}


def _child(order: Job, channel: int) -> None:
    code = 1
    try:
        import torch

        torch.set_num_threads(order.get("threads", 1))
        KINDS[order["kind"]](order, lambda round: os.write(channel, b"%d\n" % round) and None)
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def _obey(order: Job) -> int:
    ours, theirs = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(ours)
        _child(order, theirs)
    os.close(theirs)
    after = order["after"]
    with open(ours, "rb") as told:
        if after is None:
            told.read()
        elif after == 0 or any(int(line) >= after for line in told):
            time.sleep(order["delay"])
            os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status)


def main() -> None:
    # All that a child will need: what it imports, it would import each time.
    import torch

    import turnout.experiments.run
    import turnout.reproduce.run
    from turnout.data import digits

    assert torch
    assert turnout
    digits()
    for line in sys.stdin:
        sys.stdout.write(json.dumps(_obey(json.loads(line))) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
