"""Labels as the numbers 0 … C − 1, or as numbers to fit."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from turnout.data.source import Source
from turnout.errors import InputError, require

Labels = NDArray[Any]


def encode(parts: list[Labels], source: Source) -> tuple[list[Labels], int | None]:
    """The labels of all splits as targets, and the number of classes (None: regression).

    Whole numbers that already are 0 … C − 1 stay; others, and strings, become their place in
    sorted order. With `source.classes` given, whole numbers must lie in range and all stay.

    >>> encode([np.array([5, 7, 5]), np.array([9])], Source())
    ([array([0, 1, 0]), array([2])], 3)
    """
    every = np.concatenate(parts)
    if source.regression:
        numeric = every.dtype.kind in "if" and bool(np.isfinite(every).all())
        require(numeric, f"column {source.label!r}", every[:3].tolist(), "finite numbers to fit")
        return [part.astype(np.float32) for part in parts], None
    if every.dtype.kind == "f":
        if not (np.isfinite(every).all() and (every == np.rint(every)).all()):
            odd = every[~(np.isfinite(every) & (every == np.rint(every)))][0]
            raise InputError(
                f"column {source.label!r} holds {odd}; classes must be whole numbers or strings, "
                "or set `regression` to fit numbers"
            )
        parts = [part.astype(np.int64) for part in parts]
    values = np.unique(np.concatenate(parts))
    if source.classes is not None and values.dtype.kind == "i":
        inside = values[0] >= 0 and values[-1] < source.classes
        require(
            bool(inside),
            f"range of column {source.label!r}",
            f"{values[0]} … {values[-1]}",
            f"within 0 … {source.classes - 1}, as `classes` is {source.classes}",
        )
        return parts, source.classes
    classes = len(values) if source.classes is None else source.classes
    right = "at least 2, and no fewer than there are labels"
    require(classes >= max(2, len(values)), "classes", classes, right)
    return [np.searchsorted(values, part).astype(np.int64) for part in parts], classes
