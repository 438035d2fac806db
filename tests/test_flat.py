"""The flat vector: views without copies, tied and frozen parameters, round trips."""

import pytest
import torch
from torch import nn
from torch.func import functional_call, grad, vmap

from turnout.errors import InputError
from turnout.flat import Layout
from turnout.models import cnn, half_squared


class Tied(nn.Module):
    """An embedding whose table is also the output layer's weight, and a frozen scale."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(5, 3)
        self.out = nn.Linear(3, 5, bias=False)
        self.out.weight = self.table.weight
        self.shift = nn.Parameter(torch.tensor(2.0))  # a scalar: shape ()
        self.scale = nn.Parameter(torch.full((3,), 7.0), requires_grad=False)

    def forward(self, index: torch.Tensor) -> torch.Tensor:
        return self.out(self.table(index) * self.scale) + self.shift


def test_a_shared_parameter_counts_once_and_a_frozen_one_not_at_all() -> None:
    layout = Layout.of(Tied())
    assert layout.names == ("shift", "table.weight")
    assert layout.size == 1 + 15
    assert layout.offsets == (0, 1, 16)


def test_views_share_the_memory_of_the_vector() -> None:
    layout = Layout.of(cnn((3, 8, 8), 10))
    vector = torch.zeros(layout.size)
    for view in layout.views(vector).values():
        view.add_(1.0)
    assert bool((vector == 1).all())


def test_views_of_a_block_are_the_rows_views() -> None:
    layout = Layout.of(Tied())
    block = torch.randn(4, 2, layout.size, generator=torch.Generator().manual_seed(0))
    views = layout.views(block)
    assert views["table.weight"].shape == (4, 2, 5, 3)
    assert views["shift"].shape == (4, 2)
    assert views["table.weight"].untyped_storage().data_ptr() == block.untyped_storage().data_ptr()
    for name, view in layout.views(block[3, 1]).items():
        assert torch.equal(views[name][3, 1], view)
    assert torch.equal(layout.flatten(views), block)


def test_flatten_and_load_are_inverse() -> None:
    first, second = Tied(), Tied()
    layout = Layout.of(first)
    assert not torch.equal(layout.flatten(first), layout.flatten(second))
    layout.load(layout.flatten(first), second)
    assert torch.equal(layout.flatten(first), layout.flatten(second))
    assert second.out.weight is second.table.weight


def test_flatten_copies() -> None:
    module = Tied()
    layout = Layout.of(module)
    vector = layout.flatten(module)
    assert not vector.requires_grad
    vector.zero_()
    assert module.shift.item() == 2.0


def test_state_dict_round_trip_with_tied_and_frozen_parameters() -> None:
    module = Tied()
    layout = Layout.of(module)
    vector = torch.arange(float(layout.size))
    state = layout.state_dict(vector, module)
    assert state.keys() == module.state_dict().keys()
    assert torch.equal(state["out.weight"], vector[1:].reshape(5, 3))
    assert torch.equal(state["scale"], torch.full((3,), 7.0))
    assert torch.equal(layout.flatten(state), vector)
    fresh = Tied()
    fresh.load_state_dict(state)
    assert torch.equal(Layout.of(fresh).flatten(fresh), vector)


def test_functional_call_on_views_trains_tied_weights() -> None:
    """The gradient through views equals plain autograd's, shared uses summed, also under vmap."""
    module = Tied()
    layout = Layout.of(module)
    index, target = torch.tensor([0, 3, 3]), torch.zeros(3, 5)

    def loss(vector: torch.Tensor) -> torch.Tensor:
        return half_squared(functional_call(module, layout.views(vector), index), target).mean()

    half_squared(module(index), target).mean().backward()
    expected = layout.flatten({n: p.grad for n, p in module.named_parameters() if p.requires_grad})
    start = layout.flatten(module)
    torch.testing.assert_close(grad(loss)(start), expected)
    block = torch.stack([start, 2 * start])
    torch.testing.assert_close(vmap(grad(loss))(block)[0], expected)


def test_refusals() -> None:
    layout = Layout.of(nn.Linear(3, 2))
    with pytest.raises(InputError, match=r"\(7,\); it must be \[..., 8\]"):
        layout.views(torch.zeros(7))
    with pytest.raises(InputError, match="'bias' is missing"):
        layout.flatten({"weight": torch.zeros(2, 3)})
    with pytest.raises(InputError, match="'weight' is"):
        layout.flatten({"weight": torch.zeros(3, 2), "bias": torch.zeros(2)})
    mixed = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2).double())
    with pytest.raises(InputError, match=r"torch.float32, torch.float64"):
        Layout.of(mixed)
    with pytest.raises(InputError, match="none"):
        Layout.of(nn.ReLU())
