"""Crops and flips, against a plain loop over the images."""

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from turnout.data.augment import AUGMENTATIONS, Augmentation
from turnout.draws import generator
from turnout.errors import InputError


def one_by_one(images: torch.Tensor, moves: torch.Tensor, padding: int) -> torch.Tensor:
    out = []
    for image, (dy, dx, flip) in zip(images, moves.tolist(), strict=True):
        padded = F.pad(image, [padding] * 4)
        crop = padded[:, dy : dy + image.shape[1], dx : dx + image.shape[2]]
        out.append(crop.flip(2) if flip else crop)
    return torch.stack(out)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.float32])
@pytest.mark.parametrize(("padding", "flip"), [(4, True), (2, False), (0, True), (9, True)])
def test_apply_equals_the_loop(dtype, padding, flip) -> None:
    augmentation = Augmentation(padding, flip)
    images = torch.randint(1, 255, (64, 3, 7, 9), generator=torch.Generator().manual_seed(0))
    images = images.to(dtype)
    moves = torch.from_numpy(augmentation.draw(generator(0, "augment"), (64,)))
    out = augmentation.apply(images, moves)
    assert out.dtype == dtype
    assert torch.equal(out, one_by_one(images, moves, padding))
    if padding:
        assert not torch.equal(out, images)


def test_draws_are_uniform_over_their_ranges_and_keyed() -> None:
    moves = AUGMENTATIONS["crop_flip"].draw(generator(3, "augment"), (90, 100))
    assert moves.shape == (90, 100, 3)
    for column, high in ((0, 8), (1, 8), (2, 1)):
        counts = np.bincount(moves[..., column].ravel(), minlength=high + 1)
        assert len(counts) == high + 1
        assert np.allclose(counts / 9000, 1 / (high + 1), atol=0.02)
    again = AUGMENTATIONS["crop_flip"].draw(generator(3, "augment"), (90, 100))
    assert np.array_equal(moves, again)
    assert not AUGMENTATIONS["crop"].draw(generator(3, "augment"), (90, 100))[..., 2].any()


def test_no_move_changes_nothing() -> None:
    augmentation = Augmentation(padding=4)
    images = torch.rand(2, 1, 8, 8, generator=torch.Generator().manual_seed(0))
    assert torch.equal(augmentation.apply(images, torch.tensor([[4, 4, 0]] * 2)), images)


def test_refusals() -> None:
    with pytest.raises(InputError, match="padding is -1"):
        Augmentation(padding=-1)
    with pytest.raises(InputError, match="shape of the images"):
        Augmentation().apply(torch.zeros(2, 5), torch.zeros(2, 3))
