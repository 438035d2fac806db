"""What may be trained, how it starts, and how a model is found by name."""

import sys
import types

import pytest
import torch
from torch import nn

from turnout.errors import InputError
from turnout.flat import Layout
from turnout.models import Model, cnn, cross_entropy, half_squared, initialise, prepare


def vector(module: nn.Module) -> torch.Tensor:
    return Layout.of(module).flatten(module)


class Token(nn.Module):
    """A raw parameter that nothing can re-initialise, beside parts that can."""

    def __init__(self, width: int = 3, classes: int = 2) -> None:
        super().__init__()
        self.token = nn.Parameter(torch.randn(width))
        self.attention = nn.MultiheadAttention(width, 1)
        self.out = nn.Linear(width, classes)


@pytest.mark.parametrize("build", [lambda: cnn((1, 8, 8), 10), lambda: prepare(Token())])
def test_the_same_seed_gives_the_same_start_whatever_happened_before(build) -> None:
    module = build()
    first = vector(initialise(module, 3))
    torch.randn(5)
    Layout.of(module).load(torch.full_like(first, 9.0), module)
    assert torch.equal(vector(initialise(module, 3)), first)
    assert not torch.equal(vector(initialise(module, 4)), first)


def test_initialise_leaves_the_global_generator_and_frozen_parameters_alone() -> None:
    module = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 2))
    module[0].requires_grad_(False)
    body, state = module[0].weight.clone(), torch.random.get_rng_state()
    initialise(module, 0)
    assert torch.equal(module[0].weight, body)
    assert torch.equal(torch.random.get_rng_state(), state)


def test_attention_is_drawn_anew_for_every_seed() -> None:
    module = prepare(Token())
    a = initialise(module, 0).attention.in_proj_weight.clone()
    assert not torch.equal(initialise(module, 1).attention.in_proj_weight, a)


@pytest.mark.parametrize(
    "norm", [nn.BatchNorm2d(4), nn.InstanceNorm2d(4, track_running_stats=True)]
)
def test_running_statistics_are_refused_with_the_reason_and_the_remedy(norm) -> None:
    with pytest.raises(InputError) as caught:
        prepare(nn.Sequential(nn.Conv2d(1, 4, 3), norm))
    message = str(caught.value)
    assert "1.running_mean" in message
    assert "below zero" in message
    assert "GroupNorm" in message
    assert "track_running_stats=False" in message
    assert "\n" not in message


def test_norms_without_running_statistics_pass() -> None:
    prepare(nn.Sequential(nn.BatchNorm1d(4, track_running_stats=False), nn.GroupNorm(2, 4)))


def test_other_persistent_float_buffers_are_refused_and_constants_pass() -> None:
    module = nn.Linear(2, 2)
    module.register_buffer("table", torch.zeros(3))
    with pytest.raises(InputError, match=r"'table'.*persistent=False"):
        prepare(module)
    constant = nn.Linear(2, 2)
    constant.register_buffer("table", torch.zeros(3), persistent=False)
    constant.register_buffer("count", torch.zeros(3, dtype=torch.int64))
    prepare(constant)


@pytest.mark.parametrize(
    ("module", "message"),
    [
        (nn.ReLU(), "ReLU has no trainable parameters"),
        (nn.Linear(2, 2).requires_grad_(False), "no trainable parameters"),
        ("not a module", "must be a torch.nn.Module"),
        (nn.LazyLinear(3), "lazy"),
        (nn.Sequential(nn.Linear(2, 2), nn.AlphaDropout(0.5)), "AlphaDropout"),
        (nn.LSTM(2, 2, 2, dropout=0.5), "LSTM"),
        (nn.TransformerEncoderLayer(4, 2, dropout=0.1), "MultiheadAttention"),
    ],
)
@pytest.mark.filterwarnings("ignore:Lazy modules")
def test_prepare_refuses(module, message) -> None:
    with pytest.raises(InputError, match=message):
        prepare(module)


def test_model_of_a_module() -> None:
    classifier = Model.of(nn.Linear(4, 3), classes=3)
    assert classifier.loss is cross_entropy
    assert classifier.classification
    regression = Model.of(nn.Linear(4, 1))
    assert regression.loss is half_squared
    assert not regression.classification
    assert Model.of(nn.Linear(4, 3), loss="cross_entropy").classification


def test_model_by_import_path() -> None:
    model = Model.of("torch.nn:Linear", options={"in_features": 4, "out_features": 3}, classes=3)
    assert isinstance(model.module, nn.Linear)
    # Functions that name `input_shape` and `classes` get them.
    model = Model.of("turnout.models.zoo:perceptron", (1, 8, 8), 10, {"hidden": (5,)})
    assert model.module[1].weight.shape == (5, 64)


def test_a_module_built_by_path_does_not_depend_on_the_global_generator(monkeypatch) -> None:
    stand_in = types.ModuleType("stand_in")
    stand_in.Token, stand_in.ready, stand_in.number = Token, Token(), 3
    stand_in.text = lambda: "text"
    monkeypatch.setitem(sys.modules, "stand_in", stand_in)
    first = Model.of("stand_in:Token", classes=2).module.token
    torch.randn(3)
    state = torch.random.get_rng_state()
    assert torch.equal(Model.of("stand_in:Token", classes=2).module.token, first)
    assert torch.equal(torch.random.get_rng_state(), state)
    assert torch.equal(Model.of("stand_in:ready").module.token, stand_in.ready.token)
    with pytest.raises(InputError, match=r"3; it must be a torch\.nn\.Module, a subclass"):
        Model.of("stand_in:number")
    with pytest.raises(InputError, match="returned a str"):
        Model.of("stand_in:text")


@pytest.mark.parametrize(
    ("source", "options", "message"),
    [
        ("cnm", {}, "model 'cnm' is not known; did you mean 'cnn'"),
        ("no_such_package:Net", {}, "cannot be imported .ModuleNotFoundError"),
        ("torch.nn:Liner", {}, "cannot be imported .AttributeError"),
        ("torch.nn:Linear", {"widht": 3}, "options of model 'torch.nn:Linear'.*in_features"),
        ("cnn", {"droput": 0.2}, "options of model 'cnn'.*'droput'.*dropout"),
        (":", {}, "cannot be imported"),
    ],
)
def test_names_that_lead_nowhere(source, options, message) -> None:
    with pytest.raises(InputError, match=message):
        Model.of(source, (1, 8, 8), 10, options)


def test_unknown_loss() -> None:
    with pytest.raises(InputError, match="did you mean 'cross_entropy'"):
        Model.of("cnn", (1, 8, 8), 10, loss="crossentropy")
