"""One writer a run directory."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from turnout.errors import InputError

try:
    import fcntl
except ImportError:  # pragma: no cover - Windows has no flock; runs there are not locked
    fcntl = None  # type: ignore[assignment]


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold `folder` for this process; an `InputError` if another one holds it.

    The operating system lets go of the lock when its holder dies, however it dies.
    """
    handle = os.open(folder / ".lock", os.O_RDWR | os.O_CREAT, 0o644)
    try:
        if fcntl is not None:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                holder = os.read(handle, 32).decode(errors="replace").strip() or "unknown"
                raise InputError(
                    f"{folder} is in use by process {holder}; wait for it, or give --out a new folder"
                ) from error
        os.ftruncate(handle, 0)
        os.write(handle, f"{os.getpid()}\n".encode())
        yield
    finally:
        os.close(handle)
