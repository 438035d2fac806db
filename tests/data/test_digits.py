"""The embedded digits."""

import numpy as np
import torch
from sklearn.datasets import load_digits

from turnout.data.digits import digits


def test_every_image_is_in_exactly_one_split() -> None:
    train, test = digits()
    images, labels = load_digits(return_X_y=True)
    ours = torch.cat([train.inputs, test.inputs]).reshape(1797, 64).numpy() / 15
    assert sorted(map(tuple, ours)) == sorted(map(tuple, images))
    together = torch.cat([train.targets, test.targets]).numpy()
    assert np.array_equal(np.bincount(together), np.bincount(labels))
    # An image still has its own label.
    lookup = {tuple(image): label for image, label in zip(images, labels, strict=True)}
    assert all(lookup[tuple(row)] == t for row, t in zip(ours, together, strict=True))


def test_the_split_is_stratified_and_belongs_to_its_seed() -> None:
    train, test = digits()
    share = torch.bincount(test.targets) / (
        torch.bincount(train.targets) + torch.bincount(test.targets)
    )
    assert torch.allclose(share, torch.tensor(0.2), atol=0.004)
    assert torch.equal(digits()[1].inputs, test.inputs)
    assert not torch.equal(digits(seed=1)[1].inputs, test.inputs)


def test_kind_and_normalisation() -> None:
    train, test = digits()
    assert train.inputs.dtype == torch.uint8
    assert train.inputs.shape == (1438, 1, 8, 8)
    assert train.classes == test.classes == 10
    inputs, _ = train.gather(torch.arange(len(train)))
    assert abs(inputs.mean()) < 1e-5
    assert abs(inputs.std() - 1) < 1e-4
    assert test.mean is train.mean  # measured on training data only
