"""Text that comes from clients, before it may stand in a log, a file or a roster."""

_NAME, _SENTENCE = 100, 200


def one_line(text: object) -> str:
    r"""Its last line, shortened; what is not printable becomes a space.

    The last line, because that is where a traceback says what happened.

    >>> one_line("Traceback …\nValueError: no\x1bdata\n")
    'ValueError: no data'
    """
    lines = str(text).strip().splitlines() or ["no reason given"]
    line = "".join(c if c.isprintable() else " " for c in lines[-1])
    return line if len(line) <= _SENTENCE else f"{line[: _SENTENCE - 1]}…"


def as_name(text: object) -> str:
    """The same text, if it can name a client; ValueError otherwise."""
    good = isinstance(text, str) and 0 < len(text) <= _NAME and text.isprintable()
    if not (good and text == str(text).strip()):
        raise ValueError(f"a name is one line of 1 to {_NAME} characters, not {one_line(text)!r}")
    return str(text)
