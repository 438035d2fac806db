"""A biased coin for each client and round: exact for any p, at two random bytes a client.

A uniform number u in [0, 1) is read as bits, and only as many of them are drawn as it takes to
know whether u < p. The first 16 bits settle it unless they equal those of p, which happens to one
client in 65 536; for these, 53 more bits come from a generator of the client's own. A p of 1e-8 is
thus neither 0 nor 2**-24: the error is at most 2**-69. The leading bits are raw Philox output, so
that the draw of client i in round t depends on (seed, purpose, t, i) and on nothing else, neither
on the other clients' p nor on the version of numpy.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from turnout.draws import generator

Leading = NDArray[np.uint16]
_SCALE = 65536.0
_BLOCK = 2**18  # clients at a time: what is drawn stays in the cache (a multiple of 4)


def leading(p: NDArray[np.float64]) -> Leading:
    """The first 16 bits of each p; p = 1 becomes 65 535, with a remainder of 1."""
    scaled = p * _SCALE
    np.minimum(scaled, _SCALE - 1, out=scaled)
    return scaled.astype(np.uint16)  # towards zero, so this is the floor


def toss(
    bits: Leading, p: Callable[[int], float], seed: int, purpose: str, round: int
) -> NDArray[np.bool_]:
    """Heads for client i with probability p(i), where `bits` are the leading bits of all p.

    >>> p = np.array([0.0, 0.5, 1.0])
    >>> [toss(leading(p), p.item, 0, "docs", t).tolist() for t in (1, 2)]
    [[False, True, True], [False, False, True]]
    """
    source = generator(seed, purpose, round).bit_generator
    heads = np.empty(len(bits), dtype=bool)
    for first in range(0, len(bits), _BLOCK):
        block = bits[first : first + _BLOCK]
        words = source.random_raw(-(-len(block) // 4))
        drawn = words.astype("<u8", copy=False).view("<u2")[: len(block)]
        np.less(drawn, block, out=heads[first : first + _BLOCK])
        for client in (first + np.flatnonzero(drawn == block)).tolist():
            # Scaling by a power of two and taking off the whole part are both exact.
            rest = p(client) * _SCALE - float(bits[client])
            # Client 0's counter belongs to the leading bits of everyone, hence the 1.
            heads[client] = generator(seed, purpose, round, client + 1).random() < rest
    return heads
