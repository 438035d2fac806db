"""The real sets, against what is known of them; skipped where they are not there."""

import os
from pathlib import Path

import numpy as np
import pytest
import torch

from turnout.data import load
from turnout.data.parquet import _values
from turnout.data.source import KNOWN

FOLDER = Path(
    os.environ.get("TURNOUT_DATA") or Path(__file__).parents[2].parent / "shared" / "data"
)
MNIST = {
    "train": [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949],
    "test": [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009],
}
EVEN = {
    "fashion_mnist": {"train": [6000] * 10, "test": [1000] * 10},
    "cifar10": {"train": [5000] * 10, "test": [1000] * 10},
}
COUNTS = {"mnist": MNIST, **EVEN}
SHAPES = {"mnist": (1, 28, 28), "fashion_mnist": (1, 28, 28), "cifar10": (3, 32, 32)}


def needed(name: str) -> None:
    if not (FOLDER / name).is_dir():
        pytest.skip(f"{name} is not in TURNOUT_DATA or ../shared/data")


@pytest.mark.parametrize("split", ["train", "test"])
@pytest.mark.parametrize("name", COUNTS)
def test_rows_of_each_class(name, split) -> None:
    needed(name)
    labels = _values([FOLDER / name / f"{split}.parquet"], KNOWN[name].label, name)
    assert np.bincount(labels).tolist() == COUNTS[name][split]


@pytest.mark.parametrize("name", COUNTS)
def test_the_test_images_look_like_the_training_ones(name) -> None:
    """Only the smaller split is decoded here; `slow` below decodes all."""
    needed(name)
    images, _ = load(name, FOLDER, train="test")
    assert images.inputs.shape == (10_000, *SHAPES[name])
    inputs, _ = images.gather(torch.arange(10_000))
    assert inputs.mean((0, 2, 3)).abs().max() < 0.02
    assert (inputs.std((0, 2, 3)) - 1).abs().max() < 0.02


@pytest.mark.slow
@pytest.mark.parametrize("name", COUNTS)
def test_declared_mean_and_std_are_those_of_the_training_images(name) -> None:
    needed(name)
    declared, test = load(name, FOLDER)
    measured, _ = load(name, FOLDER, mean=None, std=None)
    assert (len(declared), len(test)) == (sum(COUNTS[name]["train"]), 10_000)
    # The local CIFAR-10 is a JPEG copy, which loses a little of the spread.
    tolerance = 2e-3 if name == "cifar10" else 1e-4
    np.testing.assert_allclose(declared.mean, measured.mean, atol=tolerance)
    np.testing.assert_allclose(declared.std, measured.std, atol=tolerance)
