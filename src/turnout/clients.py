"""What is known of each client at the end: kept as columns, since a million dictionaries are large."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

Row = dict[str, Any]


class Clients(Sequence[Row]):
    """Rows, one a client, made when they are asked for.

    >>> rows = Clients({"samples": np.array([3, 5]), "rate": None})
    >>> rows[1]
    {'client': 1, 'samples': 5, 'rate': None}
    >>> [row["samples"] for row in rows], rows.columns["samples"].sum()
    ([3, 5], np.int64(8))
    """

    def __init__(self, columns: Mapping[str, NDArray[Any] | None]) -> None:
        (size,) = {len(values) for values in columns.values() if values is not None}
        self.columns: dict[str, NDArray[Any] | None] = {"client": np.arange(size), **columns}

    def __len__(self) -> int:
        held = self.columns["client"]
        assert held is not None  # by `__init__`
        return len(held)

    @overload
    def __getitem__(self, place: int) -> Row: ...
    @overload
    def __getitem__(self, place: slice) -> list[Row]: ...
    def __getitem__(self, place: int | slice) -> Row | list[Row]:
        if isinstance(place, slice):
            return [self[each] for each in range(*place.indices(len(self)))]
        return {
            name: None if values is None else values[place].item()
            for name, values in self.columns.items()
        }

    def __iter__(self) -> Iterator[Row]:
        return (self[place] for place in range(len(self)))

    def __repr__(self) -> str:
        return f"Clients({len(self)}: {', '.join(self.columns)})"
