"""A process that plays one contestant, so that its threads and its memory are its own."""

import multiprocessing
import os
import signal
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection
from pathlib import Path

import torch

from turnout.bench.contestants import CONTESTANTS
from turnout.bench.workloads import WORKLOADS

PATIENCE = 300.0
"""Seconds without an answer after which a contestant is given up."""


class TroubleError(Exception):
    """A contestant that cannot play, and why."""


class Worker:
    """The parent's end of it."""

    def __init__(self, workload: str, contestant: str) -> None:
        spawn = multiprocessing.get_context("spawn")
        self._channel, theirs = spawn.Pipe()
        self._process = spawn.Process(target=_serve, args=(theirs, workload, contestant))
        with _quietly():
            self._process.start()
        theirs.close()
        self.note: str = self._answer()

    def play(self, rounds: int) -> float:
        """Seconds a round."""
        self._channel.send(rounds)
        return float(self._answer())

    def memory(self) -> int:
        """Bytes that its processes have had at most, summed over them; 0 where nobody can tell."""
        pid = self._process.pid
        return 0 if pid is None else sum(map(_peak, [pid, *_descendants(pid)]))

    def end(self) -> None:
        """End it, and the processes that it has started: Ray leaves some behind."""
        others = _descendants(self._process.pid or 0)
        if self._process.is_alive():
            with suppress(OSError):
                self._channel.send(None)
        self._process.join(10)
        self._process.kill()
        self._process.join()
        for pid in others:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def _answer(self) -> str:
        try:
            if not self._channel.poll(PATIENCE):
                raise TroubleError(f"no answer for {PATIENCE:.0f} s")
            kind, what = self._channel.recv()
        except (EOFError, OSError):
            raise TroubleError("its process ended") from None
        if kind == "trouble":
            raise TroubleError(what)
        return str(what)


def _serve(channel: Connection, workload: str, contestant: str) -> None:
    warnings.simplefilter("ignore")  # of other projects
    multiprocessing.current_process().name = "MainProcess"  # pfl sets itself up in no other
    found = CONTESTANTS[contestant]
    if found.threads is not None:
        torch.set_num_threads(found.threads)
    try:
        ready = found.make(WORKLOADS[workload])
        channel.send(("ready", ready.note))
        while (rounds := channel.recv()) is not None:
            channel.send(("seconds", ready.play(rounds)))
    except EOFError:
        pass
    except Exception as error:
        channel.send(("trouble", f"{type(error).__name__}: {error}"))
    finally:
        os._exit(0)  # without waiting for the threads of others


@contextmanager
def _quietly() -> Iterator[None]:
    """Others' logs are not the result."""
    quiet = {"RAY_DEDUP_LOGS": "1", "FLWR_TELEMETRY_ENABLED": "0", "RAY_USAGE_STATS_ENABLED": "0"}
    before = {name: os.environ.get(name) for name in quiet}
    os.environ.update(quiet)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _peak(pid: int) -> int:
    try:
        text = Path(f"/proc/{pid}/status").read_text(encoding="ascii", errors="replace")
    except OSError:
        return 0
    kilobytes = [line.split()[1] for line in text.splitlines() if line.startswith("VmHWM:")]
    return 1024 * int(kilobytes[0]) if kilobytes else 0


def _descendants(pid: int) -> list[int]:
    parents: dict[int, int] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            # The name, in brackets, may hold blanks.
            rest = path.read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()
        except OSError:
            continue
        parents[int(path.parent.name)] = int(rest[1])
    found = [pid]
    for each in found:
        found += [child for child, parent in parents.items() if parent == each]
    return found[1:]
