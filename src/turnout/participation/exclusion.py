"""Clients that never come, as SAFARI's s of M."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from turnout.draws import generator
from turnout.errors import require
from turnout.participation.inputs import array, whole
from turnout.participation.part import embed, own_purpose, restrict
from turnout.participation.process import Participation, Rows


def excluded(
    inner: Participation, absent: int | Sequence[int] | NDArray[Any], seed: int = 0
) -> Participation:
    """Another process in which some clients never come: a number of them, or these rows.

    A number is drawn once, by `seed`. Where `inner` takes m a round, they are drawn among those
    who can come, so that m stays m.

    >>> from turnout.participation.uniform import uniform
    >>> excluded(uniform(4, 2), absent=[0, 2]).mask(2).astype(int).tolist()
    [[0, 1, 0, 1], [0, 1, 0, 1]]
    """
    can_come = np.ones(inner.clients, dtype=bool)
    can_come[_rows(inner, absent, whole("seed", seed))] = False
    require(bool(can_come.any()), "absent", "every client", "fewer than that")

    def among(rows: Rows) -> Participation:
        can = can_come[rows]
        require(bool(can.any()), "the number of clients that can come", 0, "at least 1")
        return embed(restrict(inner, rows[can]), np.flatnonzero(can), len(rows))

    return replace(among(np.arange(inner.clients)), name=f"excluded({inner.name})", among=among)


def _rows(inner: Participation, absent: int | Sequence[int] | NDArray[Any], seed: int) -> Rows:
    right = "a number of clients, or a list of their rows"
    rows = array("absent", absent, right)
    last = inner.clients - 1
    if rows.ndim == 0:
        number = whole("absent", absent, most=last)
        draws = generator(seed, own_purpose("excluded", inner))
        return draws.choice(inner.clients, number, replace=False, shuffle=False)
    require(rows.ndim == 1 and (rows.dtype.kind in "iu" or not rows.size), "absent", absent, right)
    for row in rows[(rows < 0) | (rows > last)][:1].tolist():
        require(False, "a row in absent", row, f"a whole number from 0 to {last}")
    return rows.astype(np.int64)
