"""Files bent out of shape, and what is asked of whoever reads them."""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as some

from turnout.errors import InputError

A_THOUSAND = 1000
PATIENCE = 60
"""Seconds until whoever reads one file is said to hang, on a machine that others use, too."""

few_or_a_thousand = pytest.mark.parametrize(
    "inputs", [25, pytest.param(A_THOUSAND, marks=pytest.mark.slow)]
)

WORDS = ["", "nan", "inf", "-inf", "-1", "0", "1", "0.5", "1e309", "1e400", "true", "none", "NULL"]
WORDS += [str(2**31), str(2**63), str(2**64), "-0.0", "1e300", "5e-324", "0x10", "١", "½", "1_000"]
WORDS += [
    "[",
    "]",
    "[]",
    "{}",
    "{",
    '"',
    "'",
    '"""',
    "#",
    "=",
    ",",
    ";",
    "\t",
    "\r",
    "\x00",
    "\ufeff",
]
WORDS += ["../../etc/passwd", "a" * 300, "[[1, 2], [3]]", "[0.5, nan]", "2024-01-01T00:00:00Z", "é"]


def tried(inputs: int, **what: some.SearchStrategy[Any]) -> Callable[[Callable[..., None]], None]:
    """Run a check on so many inputs."""
    unhurried = settings(
        max_examples=inputs, deadline=None, suppress_health_check=list(HealthCheck)
    )
    return lambda check: unhurried(given(**what)(check))()


@some.composite
def text(draw: some.DrawFn, good: str) -> bytes:
    """A text file with lines and words exchanged, doubled, dropped, replaced, or cut."""
    lines = good.splitlines(keepends=True)
    for _ in range(draw(some.integers(1, 4))):
        at = draw(some.integers(0, max(0, len(lines) - 1)))
        match draw(some.sampled_from(["drop", "double", "swap", "word", "word", "junk", "cut"])):
            case "drop":
                del lines[at : at + 1]
            case "double":
                lines[at:at] = lines[at : at + 1]
            case "swap" if lines:
                other = draw(some.integers(0, len(lines) - 1))
                lines[at], lines[other] = lines[other], lines[at]
            case "word" if lines:
                parts = _parts(lines[at])
                place = draw(some.integers(0, len(parts) - 1))
                parts[place] = draw(some.sampled_from(WORDS) | some.text(max_size=6))
                lines[at] = "".join(parts)
            case "junk":
                lines[at:at] = [draw(some.text(max_size=20)) + "\n"]
            case "cut" if lines:
                lines[at:] = [lines[at][: draw(some.integers(0, len(lines[at])))]]
    encoded = "".join(lines).encode("utf-8", "surrogatepass")
    return draw(some.just(encoded) | binary(encoded)) if draw(some.booleans()) else encoded


def _parts(line: str) -> list[str]:
    """Words and what is between them."""
    parts, word = [], ""
    for sign in line:
        if sign.isalnum() or sign in "._-":
            word += sign
        else:
            parts += [word, sign] if word else [sign]
            word = ""
    return [*parts, word] if word or not parts else parts


@some.composite
def binary(draw: some.DrawFn, good: bytes) -> bytes:
    """Bytes set, cut, inserted, repeated; or nothing of the file at all."""
    content = bytearray(good)
    for _ in range(draw(some.integers(1, 4))):
        at = draw(some.integers(0, max(0, len(content) - 1)))
        match draw(some.sampled_from(["set", "set", "insert", "cut", "drop", "zeros", "other"])):
            case "set" if content:
                content[at] = draw(some.integers(0, 255))
            case "insert":
                content[at:at] = draw(some.binary(max_size=8))
            case "cut":
                del content[at:]
            case "drop":
                del content[at : at + draw(some.integers(1, 64))]
            case "zeros":
                content[at : at + 8] = bytes(8)
            case "other":
                content = bytearray(draw(some.binary(max_size=100)))
    return bytes(content)


@contextmanager
def in_time() -> Iterator[None]:
    """An error if it takes longer than `PATIENCE`: that would be a hang."""

    def over(kind: int, frame: FrameType | None) -> None:
        raise AssertionError(f"it has not ended after {PATIENCE} seconds")

    before = signal.signal(signal.SIGALRM, over)
    signal.alarm(PATIENCE)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def answered(use: Callable[[], object]) -> bool:
    """`use` works, or says in one sentence why it does not; whether it worked."""
    said = None
    with in_time():
        try:
            use()
        except InputError as error:
            said = str(error)
    event("taken" if said is None else "refused in a sentence")
    assert said is None or ("\n" not in said.strip() and said)
    return said is None
