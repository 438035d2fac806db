"""The embedded data set: 1 797 real handwritten digits of 8 × 8 pixels, from scikit-learn."""

import numpy as np
import torch

from turnout.data.pool import Pool
from turnout.draws import generator

_TEST_SHARE = 0.2


def digits(seed: int = 0) -> tuple[Pool, Pool]:
    """Training and test pools: a fifth of every class, drawn by `seed`, is the test set.

    >>> train, test = digits()
    >>> len(train), len(test), tuple(train.inputs.shape[1:])
    (1438, 359, (1, 8, 8))
    """
    # Imported here: this import takes a second that other data sets need not pay.
    from sklearn.datasets import load_digits

    images, labels = load_digits(return_X_y=True)
    # Ink comes in steps 0 … 16. Times 15 fits uint8 with equal whole steps, which 255 / 16 would
    # not give; normalisation takes the scale away again.
    pixels = (images * 15).astype(np.uint8).reshape(-1, 1, 8, 8)
    draw = generator(seed, "digits: test set")
    held_out = np.zeros(len(labels), dtype=bool)
    for label in range(10):
        rows = draw.permutation(np.flatnonzero(labels == label))
        held_out[rows[: round(_TEST_SHARE * len(rows))]] = True
    kept = pixels[~held_out]
    mean, std = torch.tensor([kept.mean() / 255]).float(), torch.tensor([kept.std() / 255]).float()

    def pool(rows: np.ndarray, name: str) -> Pool:
        targets = torch.from_numpy(labels[rows].astype(np.int64))
        return Pool(torch.from_numpy(pixels[rows]), targets, mean, std, 10, name)

    return pool(~held_out, "digits (train)"), pool(held_out, "digits (test)")
