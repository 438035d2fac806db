"""The pool's gather and normalisation, and what it refuses."""

import numpy as np
import pytest
import torch

from turnout.data.pool import Partition, Pool
from turnout.errors import InputError


def images() -> Pool:
    pixels = torch.arange(2 * 3 * 2 * 2, dtype=torch.uint8).reshape(2, 3, 2, 2)
    mean, std = torch.tensor([0.1, 0.2, 0.3]), torch.tensor([0.5, 0.25, 2.0])
    return Pool(pixels, torch.tensor([1, 0]), mean, std, 2, owners=np.array(["a", "b"]))


def test_gather_normalises_each_channel() -> None:
    pool = images()
    inputs, targets = pool.gather(torch.tensor([[1, 0], [0, 0]]))
    assert inputs.shape == (2, 2, 3, 2, 2)
    assert targets.tolist() == [[0, 1], [1, 1]]
    expected = (pool.inputs[1, 2].double() / 255 - 0.3) / 2.0
    torch.testing.assert_close(inputs[0, 0, 2].double(), expected, rtol=1e-5, atol=1e-6)


def test_augment_sees_raw_rows() -> None:
    pool = images()
    seen: list[torch.Tensor] = []

    def augment(raw: torch.Tensor) -> torch.Tensor:
        seen.append(raw)
        return raw * 0

    inputs, _ = pool.gather(torch.tensor([[1], [0]]), augment=augment)
    assert seen[0].dtype == torch.uint8
    assert seen[0].shape == (2, 3, 2, 2)
    black = (torch.zeros(3) - pool.mean) / pool.std
    torch.testing.assert_close(inputs[0, 0, :, 0, 0], black)


def test_take_keeps_owners_with_their_samples() -> None:
    pool = images().take(np.array([1, 1, 0]))
    assert pool.owners.tolist() == ["b", "b", "a"]
    assert pool.targets.tolist() == [0, 0, 1]


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_nan_is_refused_with_its_row(bad) -> None:
    good = torch.zeros(3, 2)
    spoilt = torch.tensor([[0.0, 0.0], [0.0, bad], [0.0, 0.0]])
    with pytest.raises(InputError, match="inputs of mine hold NaN or an infinite value in row 1"):
        Pool(spoilt, torch.zeros(3), name="mine")
    with pytest.raises(InputError, match=r"targets of mine .* row 1"):
        Pool(good, spoilt, name="mine")
    with pytest.raises(InputError, match=r"targets of mine .* row 2"):
        Pool(good, torch.tensor([0.0, 1.0, bad]), name="mine")


def test_as_many_targets_as_inputs() -> None:
    with pytest.raises(InputError, match="targets of data is 2"):
        Pool(torch.zeros(3, 1), torch.zeros(2))


def test_partition_of_owners() -> None:
    partition = Partition.of(np.array([2, 0, -1, 2, 0]), clients=4)
    assert [partition.rows(i).tolist() for i in range(4)] == [[1, 4], [], [0, 3], []]
    assert partition.sizes.tolist() == [2, 0, 2, 0]
    assert partition.clients == 4
