"""Tasks one after another in this process, or side by side in others: the same comes out.

A worker process gets a task, tells of its rounds, and sends back what came of it. If it dies, that is
said, and its task is tried once more. Signals are for the parent: it passes on the wish to stop, and
a worker whose parent is gone takes that for the same wish.
"""

import logging
import multiprocessing
import os
import pickle
import signal
import traceback
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any, Generic, Protocol, TypeVar

import torch

from turnout.errors import WorkerError
from turnout.experiments.interrupt import Asked, Interrupted

log = logging.getLogger("turnout")

T = TypeVar("T")
T_contra = TypeVar("T_contra", contravariant=True)
Tell = Callable[..., None]

LOOK_UP = 0.2
"""Seconds after which the parent looks whether it has been asked to stop."""
FAREWELL = 5.0
"""Seconds that a worker without a task has to end by itself."""


class Work(Protocol[T_contra]):
    """What is done with a task. Worker processes get a copy, so it can be pickled, as tasks can."""

    def name(self, task: T_contra, /) -> str:
        """What people know the task by."""
        ...

    def play(self, task: T_contra, tell: Tell, asked: Asked, again: bool, /) -> Any:
        """Do it: `tell` of each round, be `Interrupted` when `asked`; `again` is a second try."""
        ...


def play(
    work: Work[T],
    tasks: Sequence[T],
    jobs: int = 1,
    told: Tell | None = None,
    asked: Asked | None = None,
) -> Iterator[tuple[T, Any]]:
    """Each task with what came of it, as they get done, up to `jobs` of them side by side.

    `told` is called with a task and what its work tells. When somebody has `asked` to stop, the
    tasks at work are interrupted, and then this is. An exception of one task ends all.
    """
    asked = Asked() if asked is None else asked
    if jobs > 1:
        yield from _Crew(work, tasks, jobs, told).play(asked)
        return
    for task in tasks:

        def tell(*what: Any, task: T = task) -> None:
            if told is not None:
                told(task, *what)

        yield task, work.play(task, tell, asked, False)


# The parent ---------------------------------------------------------------------------------------


@dataclass
class _Worker:
    process: BaseProcess
    channel: Connection


@dataclass
class _Turn(Generic[T]):
    """A worker at a task."""

    worker: _Worker
    task: T
    again: bool


class _Crew(Generic[T]):
    """Worker processes and what they are at."""

    def __init__(self, work: Work[T], tasks: Sequence[T], jobs: int, told: Tell | None) -> None:
        self.work, self.jobs, self.told = work, jobs, told
        self.waiting = deque((task, False) for task in tasks)
        self.busy: dict[Connection, _Turn[T]] = {}
        self.idle: list[_Worker] = []
        self.stopping = False
        self.interrupted: list[str] = []
        self.left: list[str] = []
        self.lost: list[str] = []
        self.failure: BaseException | None = None

    def play(self, asked: Asked) -> Iterator[tuple[T, Any]]:
        try:
            while self.busy or self.waiting:
                if asked.stop:
                    self._stop()
                self._hand_out()
                for channel in wait(list(self.busy), LOOK_UP):
                    assert isinstance(channel, Connection)
                    yield from self._hear(self.busy[channel])
        finally:
            self._dismiss()
        if self.failure is not None:
            raise self.failure
        if self.interrupted or self.left:
            raise Interrupted("; ".join(self.interrupted or self.left[:1]))
        if self.lost:
            raise WorkerError(
                f"worker processes died twice at {'; '.join(self.lost)}, for want of memory perhaps; "
                "what they had is kept"
            )

    def _stop(self) -> None:
        """Let everybody finish the round and keep what there is; nothing else begins."""
        if self.stopping:
            return
        self.stopping = True
        for turn in self.busy.values():
            _send(turn.worker, None)
        self.left = [self.work.name(task) for task, _ in self.waiting]
        self.waiting.clear()

    def _hand_out(self) -> None:
        while self.waiting and len(self.busy) < self.jobs:
            worker = self.idle.pop() if self.idle else self._hire()
            turn = _Turn(worker, *self.waiting.popleft())
            self.busy[worker.channel] = turn
            _send(worker, (turn.task, turn.again))

    def _hire(self) -> _Worker:
        spawn = multiprocessing.get_context("spawn")  # a forked torch may hang
        ours, theirs = spawn.Pipe()
        # As many threads as here, or last bits would depend on the number of jobs.
        threads, level = torch.get_num_threads(), log.getEffectiveLevel()
        start = (theirs, self.work, threads, self.told is not None, level)
        process = spawn.Process(target=_serve, args=start, daemon=True)
        with _deaf(), _patient():
            process.start()
        theirs.close()  # so that the end of the process is the end of the channel
        return _Worker(process, ours)

    def _hear(self, turn: _Turn[T]) -> Iterator[tuple[T, Any]]:
        try:
            kind, what = turn.worker.channel.recv()
        except (EOFError, OSError):
            kind, what = "died", None
        if kind == "told" and self.told is not None:
            self.told(turn.task, *what)
        elif kind == "log":
            log.handle(logging.makeLogRecord(what))
        if kind in ("told", "log"):
            return
        del self.busy[turn.worker.channel]
        if kind == "died":
            self._bury(turn)
            return
        self.idle.append(turn.worker)
        if kind == "done":
            self._hand_out()  # Whoever takes the result may take long over it.
            yield turn.task, what
        elif kind == "interrupted":
            self.interrupted.append(what)
        else:
            self.failure = self.failure or what
            self._stop()

    def _bury(self, turn: _Turn[T]) -> None:
        turn.worker.channel.close()
        turn.worker.process.join(FAREWELL)
        name, how = self.work.name(turn.task), _cause(turn.worker.process.exitcode)
        if self.stopping:
            self.interrupted.append(f"{name} (its worker process died: {how})")
        elif turn.again:
            log.warning("the worker process at %s died again (%s); the others go on", name, how)
            self.lost.append(name)
        else:
            log.warning("the worker process at %s died (%s); it is tried once more", name, how)
            self.waiting.appendleft((turn.task, True))

    def _dismiss(self) -> None:
        for turn in self.busy.values():  # Only if something was raised here: they must end now.
            turn.worker.process.kill()
        for worker in self.idle:
            _send(worker, None)
        for worker in [*self.idle, *(turn.worker for turn in self.busy.values())]:
            worker.process.join(FAREWELL)
            worker.process.kill()
            worker.process.join()
            worker.channel.close()


def _send(worker: _Worker, what: Any) -> None:
    with suppress(OSError):  # A dead worker is noticed when it is listened to.
        worker.channel.send(what)


@contextmanager
def _deaf() -> Iterator[None]:
    """Processes started within this never hear of Ctrl-C, which a terminal sends to all of them."""
    if not hasattr(signal, "pthread_sigmask"):  # pragma: no cover - Windows
        yield
        return
    resource_tracker.ensure_running()  # Its start, part of the first process's, undoes masks.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT, signal.SIGTERM))
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _patient() -> Iterator[None]:
    """Threads of processes started within this do not spin while they wait, as others need the core."""
    name = "OMP_WAIT_POLICY"
    if name in os.environ:
        yield
        return
    os.environ[name] = "PASSIVE"
    try:
        yield
    finally:
        del os.environ[name]


def _cause(code: int | None) -> str:
    """Why a process ended.

    >>> _cause(-9), _cause(1)
    ('SIGKILL', 'exit code 1')
    """
    if code is not None and code < 0:
        return signal.Signals(-code).name
    return f"exit code {code}"


# The worker ---------------------------------------------------------------------------------------


def _serve(channel: Connection, work: Work[Any], threads: int, told: bool, level: int) -> None:
    """Play tasks until there are no more, or nobody is there to ask for them."""
    torch.set_num_threads(threads)
    log.setLevel(level)
    log.propagate = False
    log.addHandler(_Forward(channel))
    with suppress(EOFError, OSError):
        while (message := channel.recv()) is not None:
            task, again = message
            channel.send(_attempt(channel, work, task, again, told))


def _attempt(
    channel: Connection, work: Work[Any], task: Any, again: bool, told: bool
) -> tuple[str, Any]:
    asked = Asked()

    def tell(*what: Any) -> None:
        # Nothing else is sent in the midst of a task; the end of the channel counts, too.
        asked.stop = asked.stop or channel.poll()
        if told:
            with suppress(OSError):
                channel.send(("told", what))

    try:
        return "done", work.play(task, tell, asked, again)
    except Interrupted as stopped:
        return "interrupted", str(stopped)
    except Exception as error:
        return "failed", _portable(error)


def _portable(error: Exception) -> Exception:
    """The same, or what it says if it cannot be sent; with its traceback as a note."""
    told = "".join(traceback.format_exception(error))
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return RuntimeError(told)
    error.add_note(f"in a worker process:\n{told}")
    return error


class _Forward(logging.Handler):
    """Sends records to the parent, whose handlers say what becomes of them."""

    def __init__(self, channel: Connection) -> None:
        super().__init__()
        self.channel = channel

    def emit(self, record: logging.LogRecord) -> None:
        plain = {"name": record.name, "levelno": record.levelno, "levelname": record.levelname}
        with suppress(OSError):
            self.channel.send(("log", {**plain, "msg": record.getMessage()}))
