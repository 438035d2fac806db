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


def between(low: int, high: int) -> str:
    """A range, or the one number that it is.

    >>> between(3, 7), between(5, 5)
    ('3 to 7', '5')
    """
    return f"{low}" if low == high else f"{low} to {high}"


def counted(number: int, what: str, many: str | None = None) -> str:
    """How many.

    >>> counted(1, "client"), counted(10000, "sample")
    ('1 client', '10 000 samples')
    """
    name = what if number == 1 else many or f"{what}s"
    return f"{number:,} {name}".replace(",", " ")
