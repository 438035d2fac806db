"""Ctrl-C, once: finish the round and keep what there is. Twice: stop at once."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class Interrupted(Exception):  # noqa: N818 - not an error: somebody asked for it
    """A run ended early because it was asked to, with everything kept."""


class Asked:
    """Has anybody asked to stop?"""

    def __init__(self) -> None:
        self.stop = False


@contextmanager
def interruptible() -> Iterator[Asked]:
    """Within this, the first SIGINT or SIGTERM only sets `stop`; the next one acts as usual."""
    asked = Asked()
    if threading.current_thread() is not threading.main_thread():
        yield asked  # Only the main thread may say what a signal does.
        return
    kinds = (signal.SIGINT, signal.SIGTERM)
    before = {kind: signal.getsignal(kind) for kind in kinds}

    def note(kind: int, frame: FrameType | None) -> None:
        asked.stop = True
        for each in kinds:
            signal.signal(each, before[each])

    for kind in kinds:
        signal.signal(kind, note)
    try:
        yield asked
    finally:
        for kind in kinds:
            signal.signal(kind, before[kind])
