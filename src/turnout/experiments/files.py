"""Files that are whole or not there: written under another name, then renamed."""

import json
import math
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from turnout.errors import InputError

DRAFTS = ".writing-*"
"""What files are called until they are whole. A process that is killed may leave one behind."""


def write(path: Path, content: str | bytes) -> None:
    """Put `content` in the file `path`, which never holds only a part of it."""
    data = content.encode() if isinstance(content, str) else content
    replace(path, lambda draft: draft.write_bytes(data))


def replace(path: Path, make: Callable[[Path], Any]) -> None:
    """Let `make` write a file, and give it the name `path` when it is on the disk."""
    # The ending stays: some writers choose the form by it.
    draft = path.with_name(f".writing-{os.getpid()}-{path.name}")
    try:
        make(draft)
        with open(draft, "rb") as file:  # or, after a loss of power, the name may be all there is
            os.fsync(file.fileno())
        os.replace(draft, path)
    finally:
        draft.unlink(missing_ok=True)


@contextmanager
def lines(path: Path, position: int) -> Iterator[BinaryIO]:
    """The file `path`, open for more lines after its first `position` bytes; the rest is cut off."""
    with open(path, "r+b" if path.exists() else "w+b") as file:
        held = file.seek(0, os.SEEK_END)
        if held < position:
            raise InputError(
                f"{path} has {held} bytes; it must have the {position} of the last checkpoint, so it "
                "cannot be continued"
            )
        file.truncate(position)
        file.seek(position)
        yield file


def settle(file: BinaryIO) -> int:
    """Bring what was written to the disk, and say how far it reaches."""
    file.flush()
    os.fsync(file.fileno())
    return file.tell()


def json_line(values: Any) -> str:
    """JSON on one line; what is not finite becomes null, which JSON can say.

    >>> json_line({"loss": float("inf"), "round": 3})
    '{"loss": null, "round": 3}'
    """
    return json.dumps(_finite(values), ensure_ascii=False, allow_nan=False)


def json_text(values: Any) -> str:
    """JSON for people, with a newline at the end."""
    return json.dumps(_finite(values), ensure_ascii=False, allow_nan=False, indent=2) + "\n"


def _finite(node: Any) -> Any:
    if isinstance(node, dict):
        return {key: _finite(value) for key, value in node.items()}
    if isinstance(node, list | tuple):
        return [_finite(value) for value in node]
    return None if isinstance(node, float) and not math.isfinite(node) else node
