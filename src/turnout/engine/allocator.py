"""Have the C library keep memory that training frees, since it takes as much again at once.

By default glibc gives large blocks back to the kernel when they are freed, and the kernel hands
out the next one page by page, zeroed: for a perceptron that can cost more than the arithmetic.
"""

import ctypes
import os
from functools import cache

_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8  # as glibc's <malloc.h> numbers them


@cache
def keep_freed_memory() -> bool:
    """Whether it will, from now on, in this process; settings in the environment come first.

    A process then keeps up to a gibibyte that it has freed.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if os.name == "posix" else None
    if mallopt is None or any(
        name.startswith(("MALLOC_", "GLIBC_TUNABLES")) for name in os.environ
    ):
        return False
    # Blocks up to 32 MiB, the most that glibc allows, come from the heap that is kept; one heap
    # for all threads, because those of single threads are given back however they are set.
    return bool(
        mallopt(_TRIM_THRESHOLD, 1 << 30)
        and mallopt(_MMAP_THRESHOLD, 1 << 25)
        and mallopt(_ARENA_MAX, 1)
    )
