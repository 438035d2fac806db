"""How much this machine can hold: a size that it cannot is bad input, and is refused as such.

Asked before anything is allocated. Afterwards it is too late: Linux promises memory that it does not
have, and ends the process that believes it.
"""

import os
from contextlib import suppress
from math import prod
from pathlib import Path
from typing import Any

from turnout.errors import InputError

_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
"""Where a container's limit stands, in version 2 of control groups and in version 1."""


def memory() -> int:
    """Bytes of main memory; a container's limit, if that is less."""
    try:
        found = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):  # pragma: no cover - Windows
        return 1 << 46  # As much as a process can address there: only the impossible is refused.
    for path in _LIMITS:
        with suppress(OSError, ValueError):  # "max" is no number, and no limit
            found = min(found, int(Path(path).read_text()))
    return found


def require_room(field: str, value: Any, what: str, *shape: int, itemsize: int = 8) -> None:
    """An `InputError` about `field` unless `what`, numbers of this shape, fits in main memory.

    >>> require_room("dim", 3, "a point", 3)
    >>> require_room("dim", 2**40, "ten points", 10, 2**40)
    Traceback (most recent call last):
    turnout.errors.InputError: dim is 1099511627776; it must be less, as ten points would take 88 TB ...
    """
    wanted, have = prod(shape) * itemsize, memory()
    if wanted > have:
        raise InputError(
            f"{field} is {value!r}; it must be less, as {what} would take {amount(wanted)} and this "
            f"machine has {amount(have)} of memory"
        )


def amount(count: int) -> str:
    """Bytes as people say them.

    >>> amount(999), amount(16 << 30), amount(2**70)
    ('999 bytes', '17.2 GB', '1.18e+21 bytes')
    """
    if count < 1000:
        return f"{count} bytes"
    for unit, size in (("PB", 10**15), ("TB", 10**12), ("GB", 10**9), ("MB", 10**6), ("kB", 1000)):
        if size <= count < 1000 * size:
            return f"{count / size:.3g} {unit}"
    return f"{float(count):.3g} bytes"
