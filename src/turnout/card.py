"""Small tables of HTML, as notebooks show for what ends a cell."""

from collections.abc import Mapping
from html import escape


def card(title: str, rows: Mapping[str, str]) -> str:
    """A heading and a row for each thing that there is to say.

    >>> "cutoff</th>" in card("fedau", {"cutoff": "50"})
    True
    """
    style = ' style="text-align:left"'
    body = "".join(
        f"<tr><th{style}>{escape(key)}</th><td{style}>{escape(value)}</td></tr>"
        for key, value in rows.items()
    )
    caption = f'<caption style="text-align:left"><b>{escape(title)}</b></caption>'
    return f"<table>{caption}<tbody>{body}</tbody></table>"
