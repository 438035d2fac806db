"""Random draws as functions of (seed, purpose, round, client).

There is no global generator anywhere in turnout. Each draw comes from a counter-based
generator (Philox) whose key is the seed and the purpose and whose counter starts at the
round and the client, so that the order of clients, the number of workers, the engine, a
resume or the driver cannot change what is drawn.

>>> generator(0, "batches", round=3, client=7).integers(100, size=3).tolist() == (
...     generator(0, "batches", round=3, client=7).integers(100, size=3).tolist())
True
"""

import hashlib
from functools import lru_cache

import numpy as np


@lru_cache(maxsize=256)
def _purpose_key(purpose: str) -> int:
    # A digest, not `hash`: Python salts string hashes anew in every process.
    return int.from_bytes(hashlib.blake2b(purpose.encode(), digest_size=8).digest(), "little")


def generator(seed: int, purpose: str, round: int = 0, client: int = 0) -> np.random.Generator:
    """The generator that belongs to one purpose of one client in one round."""
    # Word 0 of the counter is left to the stream itself: 2**64 blocks before two streams meet.
    key = np.array([seed & 0xFFFF_FFFF_FFFF_FFFF, _purpose_key(purpose)], dtype=np.uint64)
    counter = np.array([0, client, round, 0], dtype=np.uint64)
    return np.random.Generator(np.random.Philox(key=key, counter=counter))
