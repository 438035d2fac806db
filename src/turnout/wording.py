"""Numbers as people say them."""


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


def duration(seconds: float) -> str:
    """A rough time.

    >>> duration(42), duration(600), duration(9000)
    ('42 s', '10 min', '2.5 h')
    """
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
