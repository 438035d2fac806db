"""The first signal is noted, the second one acts."""

import os
import signal
import threading

import pytest

from turnout.experiments.interrupt import Asked, interruptible


@pytest.mark.parametrize("kind", [signal.SIGINT, signal.SIGTERM])
def test_the_first_signal_is_noted(kind: signal.Signals) -> None:
    before = signal.getsignal(kind)
    with interruptible() as asked:
        assert not asked.stop
        os.kill(os.getpid(), kind)
        assert asked.stop
    assert signal.getsignal(kind) is before


def test_the_second_signal_stops_at_once() -> None:
    with interruptible() as asked:
        os.kill(os.getpid(), signal.SIGINT)
        assert asked.stop
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)


def test_a_thread_leaves_signals_alone() -> None:
    before, seen = signal.getsignal(signal.SIGINT), list[Asked]()

    def work() -> None:
        with interruptible() as asked:
            assert signal.getsignal(signal.SIGINT) is before
            seen.append(asked)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert not seen[0].stop
