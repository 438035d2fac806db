"""From any `torch.nn.Module` to one that federated training can use, or a clear refusal."""

import copy
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _NormBase
from torch.nn.modules.dropout import _DropoutNd

from turnout.errors import InputError
from turnout.models.dropout import Dropout

_KEYED: dict[type, bool] = {  # whether whole channels go at once
    nn.Dropout: False,
    nn.Dropout1d: True,
    nn.Dropout2d: True,
    nn.Dropout3d: True,
}
_START = "_turnout_start"


def prepare(module: nn.Module) -> nn.Module:
    """A copy of `module` with keyed dropout; `InputError` if it cannot be trained as one vector.

    >>> prepare(nn.Sequential(nn.Linear(4, 2), nn.Dropout(0.2)))[1]
    Dropout(p=0.2, salt=0)
    """
    if not isinstance(module, nn.Module):
        raise InputError(f"model is {module!r}; it must be a torch.nn.Module")
    _require_parameters(module)
    _refuse_statistics(module)
    module = copy.deepcopy(module)
    _key_dropout(module)
    # Parameters that nothing can re-initialise start where their author put them: see `initialise`.
    setattr(module, _START, {name: p.detach().clone() for name, p in _without_reset(module)})
    return module


def initialise(module: nn.Module, seed: int) -> nn.Module:
    """Draw the parameters of `module` anew, in place: the same seed, the same start.

    Every part draws by its own `reset_parameters` (turnout's layers: Kaiming weights, zero biases).
    Parameters of a part without that method go back to the values that `prepare` found. The global
    generator is left as it was. Call it before moving the module to another device.

    >>> first = initialise(nn.Linear(3, 2), 0).weight.clone()
    >>> bool((initialise(nn.Linear(3, 2), 0).weight == first).all())
    True
    """
    # Frozen parameters (a pretrained body) are not turnout's to change.
    frozen = [(p, p.detach().clone()) for p in module.parameters() if not p.requires_grad]
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.default_generator.manual_seed(seed)
        for part in module.modules():
            reset = _reset(part)
            if reset is not None:
                reset()
        start: dict[str, Tensor] = getattr(module, _START, {})
        for name, value in start.items():
            module.get_parameter(name).copy_(value)
        for parameter, value in frozen:
            parameter.copy_(value)
    return module


def _reset(part: nn.Module) -> Callable[[], None] | None:
    # torch's attention and transformer layers spell it with an underscore.
    found = getattr(part, "reset_parameters", None) or getattr(part, "_reset_parameters", None)
    return found if callable(found) else None


def _without_reset(module: nn.Module) -> list[tuple[str, nn.Parameter]]:
    # A tied parameter counts as covered when any of its owners can draw it.
    covered = {
        id(parameter)
        for part in module.modules()
        if _reset(part) is not None
        for parameter in part.parameters(recurse=False)
    }
    return [(name, p) for name, p in module.named_parameters() if id(p) not in covered]


def _require_parameters(module: nn.Module) -> None:
    name = type(module).__name__
    parameters = list(module.parameters())
    if any(isinstance(p, nn.parameter.UninitializedParameter) for p in parameters):
        raise InputError(
            f"model {name} has lazy parameters without a shape; run it once on a batch first"
        )
    if not any(p.requires_grad for p in parameters):
        raise InputError(f"model {name} has no trainable parameters; it must have at least one")


def _refuse_statistics(module: nn.Module) -> None:
    persistent = module.state_dict(keep_vars=True)
    for name, buffer in module.named_buffers():
        if name not in persistent or not buffer.is_floating_point():
            continue
        owner = module.get_submodule(name.rpartition(".")[0])
        remedy = (
            "use GroupNorm, or track_running_stats=False"
            if isinstance(owner, _NormBase)
            else "if it is a constant, register it with persistent=False"
        )
        raise InputError(
            f"model {type(module).__name__} has the floating-point buffer {name!r}, which would "
            "have to be averaged like a parameter, but weights that do not sum to one and "
            f"amplification can push a running variance below zero; {remedy}"
        )


def _key_dropout(module: nn.Module) -> None:
    keyed: dict[int, Dropout] = {}
    for name, part in module.named_modules():
        # The salt is the layer's turn in the module, so it is the same in every process.
        if isinstance(part, Dropout):
            keyed[id(part)] = part
            part.salt = len(keyed) - 1
        elif isinstance(part, _DropoutNd) and type(part) in _KEYED:
            dropout = Dropout(part.p, len(keyed), _KEYED[type(part)])
            keyed[id(part)] = dropout.train(part.training)
        elif isinstance(part, _DropoutNd | nn.RReLU) or (
            isinstance(part, nn.RNNBase | nn.MultiheadAttention) and part.dropout > 0
        ):
            raise InputError(
                f"model {type(module).__name__} draws from the global generator in {name!r} "
                f"({type(part).__name__}), which cannot be replayed; set its dropout to 0 or use "
                "nn.Dropout"
            )
    for part in list(module.modules()):
        for name, child in list(part._modules.items()):
            if id(child) in keyed:
                setattr(part, name, keyed[id(child)])
