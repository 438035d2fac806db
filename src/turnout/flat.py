"""A module's trainable parameters as one flat vector, and views back into it."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

import torch
from torch import Tensor, nn

from turnout.errors import InputError, require


@dataclass(frozen=True)
class Layout:
    """Where each trainable parameter lies in the vector.

    A parameter that several parts share is there once; frozen ones are not there at all.

    >>> layout = Layout.of(nn.Linear(3, 2))
    >>> layout.names, layout.size
    (('weight', 'bias'), 8)
    >>> layout.views(torch.arange(8.0))["bias"]
    tensor([6., 7.])
    """

    names: tuple[str, ...]
    shapes: tuple[torch.Size, ...]
    offsets: tuple[int, ...]  # one more than names: the last is the size
    dtype: torch.dtype

    @property
    def size(self) -> int:
        """d, the length of the vector."""
        return self.offsets[-1]

    @staticmethod
    def of(module: nn.Module) -> "Layout":
        """The layout of `module`'s trainable parameters, in the order in which it names them."""
        # `named_parameters` names a shared parameter once.
        parts = [(name, p) for name, p in module.named_parameters() if p.requires_grad]
        kinds = {p.dtype for _, p in parts}
        if len(kinds) != 1:
            found = ", ".join(sorted(map(str, kinds))) or "none"
            raise InputError(
                f"dtypes of the trainable parameters are {found}; they must be one and the same"
            )
        offsets = [0]
        for _, parameter in parts:
            offsets.append(offsets[-1] + parameter.numel())
        return Layout(
            tuple(name for name, _ in parts),
            tuple(p.shape for _, p in parts),
            tuple(offsets),
            kinds.pop(),
        )

    def views(self, vector: Tensor) -> dict[str, Tensor]:
        """Each parameter as a view into `vector` [..., d]: [..., *shape], nothing copied."""
        require(
            vector.dim() > 0 and vector.shape[-1] == self.size,
            "shape of the vector",
            tuple(vector.shape),
            f"[..., {self.size}]",
        )
        lead = vector.shape[:-1]
        return {
            name: vector[..., start:stop].view((*lead, *shape))
            for name, shape, start, stop in zip(
                self.names, self.shapes, self.offsets, self.offsets[1:], strict=False
            )
        }

    def flatten(self, source: nn.Module | Mapping[str, Tensor]) -> Tensor:
        """A new vector [d] from a module, or [..., d] from a mapping of tensors [..., *shape].

        A mapping may hold gradients or be a state dict; other names in it are passed over.
        """
        if isinstance(source, nn.Module):
            found: Mapping[str, Tensor] = {n: p.detach() for n, p in source.named_parameters()}
        else:
            found = source
        missing = [name for name in self.names if name not in found]
        if missing:
            raise InputError(
                f"parameter {missing[0]!r} is missing; the source must hold {', '.join(self.names)}"
            )
        pieces = []
        for name, shape in zip(self.names, self.shapes, strict=True):
            tensor = found[name]
            lead = tensor.shape[: tensor.dim() - len(shape)]
            require(
                tensor.shape == lead + shape,
                f"shape of parameter {name!r}",
                tuple(tensor.shape),
                f"[..., {', '.join(map(str, shape))}]",
            )
            pieces.append(tensor.reshape(*lead, prod(shape)))
        return torch.cat(pieces, dim=-1)

    def load(self, vector: Tensor, module: nn.Module) -> None:
        """Copy `vector` [d] into the parameters of `module`."""
        parameters = dict(module.named_parameters())
        with torch.no_grad():
            for name, view in self.views(vector).items():
                parameters[name].copy_(view)

    def state_dict(self, vector: Tensor, module: nn.Module) -> dict[str, Tensor]:
        """`module.state_dict()` as if `vector` were loaded: with frozen parts and tied names."""
        views = self.views(vector)
        # A tied parameter has several names in a state dict but only its first in the layout.
        first = {id(p): name for name, p in module.named_parameters()}
        return {
            name: views.get(first.get(id(value), name), value.detach()).clone()
            for name, value in module.state_dict(keep_vars=True).items()
        }
