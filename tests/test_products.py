"""Products by oneDNN: float32 as exact as torch's own, only where it pays, and put back afterwards."""

import numpy as np
import pytest
import torch

from turnout import Model, World, algorithms, data, participation, products, simulate

SWITCH = products._switch()
needs_switch = pytest.mark.skipif(SWITCH is None, reason="this torch has no such setting")
AMX = torch.cpu._is_amx_tile_supported() if hasattr(torch.cpu, "_is_amx_tile_supported") else True
needs_exact = pytest.mark.skipif(
    SWITCH is None or AMX, reason="oneDNN may round to bfloat16 on this processor"
)


@pytest.fixture
def always(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if the processor were one where it pays."""
    monkeypatch.setattr(products, "pays", lambda: True)


@needs_switch
def test_the_setting_is_put_back_also_after_an_error(always: None) -> None:
    before = SWITCH.fp32_precision
    with products.quick(products.LEAST):
        assert SWITCH.fp32_precision == "bf16"
        with products.quick(products.LEAST):
            assert SWITCH.fp32_precision == "bf16"
        assert SWITCH.fp32_precision == "bf16"
    assert SWITCH.fp32_precision == before
    with pytest.raises(RuntimeError), products.quick(products.LEAST):
        raise RuntimeError
    assert SWITCH.fp32_precision == before


@needs_switch
def test_small_models_and_other_processors_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    before = SWITCH.fp32_precision
    monkeypatch.setattr(products, "pays", lambda: True)
    with products.quick(products.LEAST - 1):
        assert SWITCH.fp32_precision == before
    monkeypatch.setattr(products, "pays", lambda: False)
    with products.quick(products.LEAST):
        assert SWITCH.fp32_precision == before


@needs_switch
def test_rounding_to_bfloat16_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    real = torch.bmm
    monkeypatch.setattr(torch, "bmm", lambda a, b: real(a.bfloat16(), b.bfloat16()).float())
    assert not products._exact()


@needs_exact
@pytest.mark.parametrize("shape", [(3, 10, 784, 64), (25, 64, 784, 16), (1, 512, 300, 7)])
def test_products_have_the_error_of_float32(always: None, shape: tuple[int, ...]) -> None:
    count, out, features, batch = shape
    generator = torch.Generator().manual_seed(1)
    left = torch.randn(count, out, features, generator=generator)
    right = torch.randn(count, batch, features, generator=generator).transpose(1, 2)
    exact = left.double() @ right.double()
    with products.quick(products.LEAST):
        found = torch.bmm(left, right)
    assert float((found - exact).norm() / exact.norm()) < 2e-6


@needs_exact
@pytest.mark.parametrize("engine", ["batched", "threaded", "reference"])
def test_a_run_is_the_same_up_to_rounding(monkeypatch: pytest.MonkeyPatch, engine: str) -> None:
    train, test = data.digits()
    partition = data.iid(len(train), clients=20, seed=0)
    world = World.build(train, partition, test, participation.uniform(20, per_round=5))
    model = Model.of("perceptron", (1, 8, 8), 10, {"hidden": [64]})
    runs = []
    for pays in (False, True):
        monkeypatch.setattr(products, "pays", lambda pays=pays: pays)
        runs.append(simulate(algorithms.fedau(), world, model, rounds=5, engine=engine))
    assert runs[0].x.numel() >= products.LEAST
    torch.testing.assert_close(runs[1].x, runs[0].x, rtol=1e-4, atol=1e-6)
    losses = [run.curve("test_loss")[1] for run in runs]
    np.testing.assert_allclose(losses[1], losses[0], rtol=1e-5)
