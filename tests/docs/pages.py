"""The pages of the documentation, and the code in them."""

import re
from pathlib import Path
from typing import NamedTuple

DOCS = Path(__file__).parents[2] / "docs"

_FENCE = re.compile(r"^```(\w*)([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


class Snippet(NamedTuple):
    line: int
    code: str
    prints: str | None
    """What the page says that it prints, in the block titled "Output" after it; None if nothing."""


def pages() -> list[Path]:
    return sorted(DOCS.rglob("*.md"))


def snippets(text: str) -> list[Snippet]:
    """The blocks of Python in a page, each with the output shown after it."""
    found: list[Snippet] = []
    for block in _FENCE.finditer(text):
        language, rest, body = block.groups()
        line = text.count("\n", 0, block.start()) + 2
        if language == "python":
            found.append(Snippet(line, body, None))
        elif 'title="Output"' in rest:
            found[-1] = found[-1]._replace(prints=body)
    return found
