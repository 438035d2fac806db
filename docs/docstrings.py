"""Shows the examples in docstrings as code; Markdown would take >>> for quotations."""

import re
from typing import Any

from griffe import Docstring, Extension, Object

# From a prompt to the next empty line, wherever the docstring does not fence it already.
_EXAMPLE = re.compile(r"(?m)^>>> (?:.*\n?)+?(?=\n|\Z)")


class Examples(Extension):
    """Fences the doctests of every docstring."""

    def on_object(self, *, obj: Object, **kwargs: Any) -> None:
        if isinstance(obj.docstring, Docstring):
            obj.docstring.value = fenced(obj.docstring.value)


def fenced(text: str) -> str:
    return _EXAMPLE.sub(lambda found: f"```pycon\n{found[0].rstrip()}\n```\n", text)
