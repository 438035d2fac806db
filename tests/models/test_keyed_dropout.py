"""Keyed dropout: a pure function with the statistics of dropout."""

import concurrent.futures

import numpy as np
import pytest
import torch
from scipy import stats
from torch import nn
from torch.func import functional_call, vmap

from turnout.models import Dropout, cnn, initialise, key_buffers, prepare
from turnout.models.dropout import random_words


def key(value: int) -> torch.Tensor:
    return torch.tensor(value, dtype=torch.int64)


@pytest.mark.parametrize("value", [0, 1, 2**31, 2**63 - 1, -1])
def test_words_are_uniform(value) -> None:
    words = random_words(key(value), 100_000).double() / 2**32
    assert words.min() >= 0
    assert words.max() < 1
    assert stats.kstest(words.numpy(), "uniform").pvalue > 1e-4


@pytest.mark.parametrize("other", [{"salt": 1}, {"bit": 0}, {"bit": 31}, {"bit": 32}, {"bit": 62}])
def test_one_changed_bit_of_the_key_or_another_salt_changes_everything(other) -> None:
    base = 123_456_789_012_345
    a = random_words(key(base), 20_000).numpy()
    b = random_words(key(base ^ (1 << other.get("bit", 0)) if "bit" in other else base), 20_000,
                     other.get("salt", 0)).numpy()  # fmt: skip
    assert abs(np.corrcoef(a, b)[0, 1]) < 0.035  # five standard deviations
    # Also as sequences shifted against each other, for the masks of keys in a row.
    for shift in (1, 2, 64):
        assert abs(np.corrcoef(a[shift:], b[:-shift])[0, 1]) < 0.035
    flipped = [(((a ^ b) >> bit) & 1).mean() for bit in range(32)]
    assert np.allclose(flipped, 0.5, atol=0.02)


def test_consecutive_keys_draw_independently_for_one_element() -> None:
    keys = torch.arange(5_000, dtype=torch.int64)
    words = vmap(lambda k: random_words(k, 3))(keys).double() / 2**32
    for column in words.T:
        assert stats.kstest(column.numpy(), "uniform").pvalue > 1e-4
        assert abs(np.corrcoef(column[1:], column[:-1])[0, 1]) < 0.07


@pytest.mark.parametrize("p", [0.1, 0.2, 0.5, 0.9])
def test_the_share_dropped_is_p_and_the_mean_is_kept(p) -> None:
    out = Dropout(p)(torch.ones(200, 1000))
    share = (out == 0).double().mean().item()
    assert share == pytest.approx(p, abs=5 * (p * (1 - p) / 200_000) ** 0.5)
    assert torch.all((out == 0) | torch.isclose(out, torch.tensor(1 / (1 - p))))
    # Rows and columns differ from one another: no stripes.
    assert (out == 0).double().mean(0).std() == pytest.approx((p * (1 - p) / 200) ** 0.5, rel=0.2)


def test_it_is_a_pure_function_and_leaves_the_global_generator_alone() -> None:
    layer, x = Dropout(0.5, salt=3), torch.ones(64)
    before = torch.random.get_rng_state()
    first = layer(x)
    torch.manual_seed(99)
    state = torch.random.get_rng_state()
    assert torch.equal(layer(x), first)
    assert torch.equal(torch.random.get_rng_state(), state)
    other = functional_call(layer, {"key": key(1)}, (x,))
    assert not torch.equal(other, first)
    assert torch.equal(layer(x), first)
    torch.random.set_rng_state(before)


def test_evaluation_and_p_zero_pass_everything() -> None:
    x = torch.randn(3, 4, generator=torch.Generator().manual_seed(0))
    assert torch.equal(Dropout(0.5).eval()(x), x)
    assert torch.equal(Dropout(0.0)(x), x)


def test_whole_channels() -> None:
    out = Dropout(0.5, channels=True)(torch.ones(8, 16, 3, 3)).flatten(2)
    assert torch.equal(out.amin(2), out.amax(2))
    assert 0.3 < (out[..., 0] == 0).double().mean() < 0.7


def test_the_key_is_not_part_of_the_state() -> None:
    layer = Dropout(0.5)
    assert layer.state_dict() == {}
    assert dict(layer.named_buffers())["key"].dtype == torch.int64


def test_vmap_over_keys_and_parameters_equals_client_by_client() -> None:
    module = initialise(cnn((1, 8, 8), 10, dropout=0.3), 0)
    names = key_buffers(module)
    assert len(names) == 3
    inputs = torch.randn(4, 5, 1, 8, 8, generator=torch.Generator().manual_seed(1))
    keys = torch.tensor([5, -7, 2**40, 0])
    parameters = dict(module.named_parameters())

    def forward(k: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        return functional_call(module, {**parameters, **dict.fromkeys(names, k)}, (x,))

    together = vmap(forward)(keys, inputs)
    for k, x, y in zip(keys, inputs, together, strict=True):
        torch.testing.assert_close(forward(k, x), y, rtol=1e-5, atol=1e-5)
    assert not torch.allclose(forward(keys[0], inputs[0]), forward(keys[1], inputs[0]))
    # The mask itself is bit for bit the same.
    layer = Dropout(0.3)
    masks = vmap(lambda k, x: functional_call(layer, {"key": k}, (x,)))(keys, inputs)
    for k, x, mask in zip(keys, inputs, masks, strict=True):
        assert torch.equal(functional_call(layer, {"key": k}, (x,)), mask)


def test_a_padded_batch_drops_the_same_elements_of_the_real_rows() -> None:
    layer, x = Dropout(0.5), torch.ones(6, 10)
    assert torch.equal(layer(x)[:4], layer(x[:4]))


def test_memory_format_does_not_matter() -> None:
    layer, x = Dropout(0.5), torch.ones(2, 3, 4, 5)
    assert torch.equal(layer(x), layer(x.contiguous(memory_format=torch.channels_last)))


def test_threads_and_compile_give_the_same_mask() -> None:
    layer, x = Dropout(0.5), torch.ones(1000)
    expected = [functional_call(layer, {"key": key(k)}, (x,)) for k in range(8)]
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        words = list(pool.map(lambda k: random_words(key(k), 1000), range(8)))
    compiled = torch.compile(
        lambda k: functional_call(layer, {"key": k}, (x,)), backend="aot_eager", fullgraph=True
    )
    for k in range(8):
        assert torch.equal((words[k] >= 2**31).float() * 2, expected[k])
        assert torch.equal(compiled(key(k)), expected[k])


def test_prepare_replaces_dropout_everywhere_with_salts_of_their_own() -> None:
    shared = nn.Dropout(0.25)
    module = nn.Sequential(
        nn.Linear(4, 4), shared, nn.Sequential(nn.Dropout2d(0.5), shared), Dropout(0.1)
    )
    ready = prepare(module)
    layers = [part for part in ready.modules() if isinstance(part, Dropout)]
    assert [(d.p, d.salt, d.channels) for d in layers] == [
        (0.25, 0, False),
        (0.5, 1, True),
        (0.1, 2, False),
    ]
    assert ready[1] is ready[2][1]
    assert key_buffers(ready) == ["1.key", "2.0.key", "3.key"]
    assert isinstance(module[1], nn.Dropout), "the module that was given stays as it was"
    assert key_buffers(Dropout(0.5)) == ["key"]
