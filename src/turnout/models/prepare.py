"""From any `torch.nn.Module` to one that federated training can use, or a clear refusal."""

import copy

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.dropout import _DropoutNd

from turnout.errors import InputError
from turnout.models.dropout import Dropout

_PLAIN: dict[type, bool] = {
    nn.Dropout: False,
    nn.Dropout1d: True,
    nn.Dropout2d: True,
    nn.Dropout3d: True,
}
_START = "_turnout_start"


def prepare(module: nn.Module) -> nn.Module:
    """A copy of `module` with keyed dropout; `InputError` if it cannot be trained as one vector.

    >>> prepare(nn.Sequential(nn.Linear(4, 2), nn.Dropout(0.2)))[1]
    Dropout(p=0.2, salt=1)
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
    generator is left as it was.

    >>> first = initialise(nn.Linear(3, 2), 0).weight.clone()
    >>> bool((initialise(nn.Linear(3, 2), 0).weight == first).all())
    True
    """
    # Frozen parameters (a pretrained body) are not turnout's to change.
    frozen = [(p, p.detach().clone()) for p in module.parameters() if not p.requires_grad]
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.default_generator.manual_seed(seed)
        for part in module.modules():
            reset = getattr(part, "reset_parameters", None)
            if callable(reset):
                reset()
        start: dict[str, Tensor] = getattr(module, _START, {})
        for name, value in start.items():
            module.get_parameter(name).copy_(value)
        for parameter, value in frozen:
            parameter.copy_(value)
    return module


def _without_reset(module: nn.Module) -> list[tuple[str, nn.Parameter]]:
    own = [
        (f"{prefix}.{name}" if prefix else name, parameter)
        for prefix, part in module.named_modules()
        if not callable(getattr(part, "reset_parameters", None))
        for name, parameter in part.named_parameters(recurse=False)
    ]
    # A tied parameter counts as covered when any of its owners can draw it.
    covered = {
        id(parameter)
        for part in module.modules()
        if callable(getattr(part, "reset_parameters", None))
        for parameter in part.parameters(recurse=False)
    }
    return [(name, parameter) for name, parameter in own if id(parameter) not in covered]


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
        if name in persistent and buffer.is_floating_point():
            owner = module.get_submodule(name.rpartition(".")[0])
            remedy = (
                "use GroupNorm, or track_running_stats=False"
                if isinstance(owner, _BatchNorm | nn.InstanceNorm1d | nn.InstanceNorm2d | nn.InstanceNorm3d)
                else "register it with persistent=False if it is a constant"
            )
            raise InputError(
                f"model {type(module).__name__} has the floating-point buffer {name!r}, which "
                "would have to be averaged like a parameter, but participation weights that do "
                "not sum to one and amplification can push a running variance below zero; "
                f"{remedy}"
            )


def _key_dropout(module: nn.Module) -> None:
    replaced: dict[int, Dropout] = {}
    # The salt is the layer's place in the module, the same in every process.
    for salt, (name, part) in enumerate(module.named_modules()):
        inner = getattr(part, "dropout", 0.0)
        own_draws = isinstance(part, nn.RNNBase | nn.MultiheadAttention) and inner > 0
        other_kind = isinstance(part, _DropoutNd | nn.RReLU) and type(part) not in _PLAIN
        if own_draws or other_kind:
            raise InputError(
                f"model {type(module).__name__} draws from the global generator in "
                f"{name or 'itself'!r} ({type(part).__name__}), which cannot be replayed; "
                "set its dropout to 0 or use nn.Dropout"
            )
        if isinstance(part, _DropoutNd):
            replaced[id(part)] = Dropout(part.p, max(salt - 0, 0), _PLAIN[type(part)])
    for part in list(module.modules()):
        for name, child in list(part.named_children()):
            if id(child) in replaced:
                keyed = replaced[id(child)]
                keyed.train(child.training)
                setattr(part, name, keyed)
