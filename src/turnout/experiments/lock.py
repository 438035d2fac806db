"""One writer a run directory, and one a cell."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from turnout.errors import InputError

try:
    import fcntl
except ImportError:  # pragma: no cover - Windows has no flock; runs there are not locked
    fcntl = None  # type: ignore[assignment]


@contextmanager
def locked(
    folder: Path, patience: float = 0.0, instead: str = "give --out a new folder"
) -> Iterator[None]:
    """Hold `folder` for this process; an `InputError` if another one holds it.

    The operating system lets go of the lock when its holder dies, however it dies. A worker process
    whose parent was killed still finishes its round: for that, some seconds of `patience`.
    """
    handle = os.open(folder / ".lock", os.O_RDWR | os.O_CREAT, 0o644)
    until = time.monotonic() + patience
    try:
        while not _taken(handle):
            if time.monotonic() >= until:
                holder = os.read(handle, 32).decode(errors="replace").strip() or "unknown"
                raise InputError(
                    f"{folder} is in use by process {holder}; wait for it, or {instead}"
                )
            time.sleep(0.05)
        os.ftruncate(handle, 0)
        os.write(handle, f"{os.getpid()}\n".encode())
        yield
    finally:
        os.close(handle)


def _taken(handle: int) -> bool:
    if fcntl is None:
        return True
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
