"""Losses are one number a sample, and the sample's own."""

import pytest
import torch

from turnout.errors import InputError
from turnout.models import accuracy, correct, cross_entropy, half_squared


def test_cross_entropy_by_hand() -> None:
    output = torch.tensor([[0.0, 0.0], [0.0, 3.0]])
    expected = [torch.log(torch.tensor(2.0)), torch.log1p(torch.exp(torch.tensor(-3.0)))]
    torch.testing.assert_close(cross_entropy(output, torch.tensor([0, 1])), torch.stack(expected))


def test_half_squared_by_hand_and_its_shapes() -> None:
    target = torch.tensor([1.0, 2.0])
    assert half_squared(torch.tensor([[3.0], [2.0]]), target).tolist() == [2.0, 0.0]
    assert half_squared(torch.tensor([3.0, 2.0]), target).tolist() == [2.0, 0.0]
    assert half_squared(torch.ones(2, 3, 2), torch.zeros(2, 3, 2)).tolist() == [3.0, 3.0]
    with pytest.raises(InputError, match=r"\(2, 3\); it must be that of the targets, \(2,\)"):
        half_squared(torch.ones(2, 3), target)


def test_accuracy() -> None:
    output = torch.tensor([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4], [0.3, 0.7]])
    target = torch.tensor([0, 1, 1, 1])
    assert correct(output, target).tolist() == [True, True, False, True]
    assert accuracy(output, target).item() == 0.75
