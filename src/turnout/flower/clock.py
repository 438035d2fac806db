"""Time as the federation sees it; tests bring their own."""

import time
from collections.abc import Callable
from typing import NamedTuple


class Clock(NamedTuple):
    now: Callable[[], float] = time.monotonic
    """Seconds that only ever grow, for deadlines."""
    wall: Callable[[], float] = time.time
    """Seconds since 1970, for the log."""
    sleep: Callable[[float], None] = time.sleep
