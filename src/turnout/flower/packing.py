"""Flower's arrays and turnout's flat vector: how one becomes the other."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import torch
from flwr.app import Array, ArrayRecord
from torch import Tensor

from turnout.errors import InputError
from turnout.flat import Layout
from turnout.models import Model


def tensors(record: ArrayRecord) -> dict[str, Tensor]:
    """The arrays of a record as tensors.

    >>> tensors(record({"bias": torch.ones(2)}))
    {'bias': tensor([1., 1.])}
    """
    return {name: _tensor(name, array) for name, array in record.items()}


def _tensor(name: str, array: Array) -> Tensor:
    found = array.numpy()
    if found.dtype.kind not in "biufc":
        # Items of no bytes can be as many as a header says, and copying them takes as long.
        raise TypeError(f"array {name!r} is of {found.dtype}, and not of numbers")
    # Flower's arrays are views of received bytes, which torch must not write to: hence the copy.
    return torch.from_numpy(np.array(found))


def record(named: Mapping[str, Tensor]) -> ArrayRecord:
    """Tensors as a record, in the same order."""
    return ArrayRecord({name: Array(t.detach().cpu().numpy()) for name, t in named.items()})


class Packing(NamedTuple):
    """Which arrays of a record are pieces of the vector; the others stay as they came."""

    layout: Layout
    named: dict[str, Tensor]
    """The record that this was made from."""
    home: dict[str, str]
    """Name in the record → name in the layout. Tied parameters have several, frozen ones none."""

    @staticmethod
    def of(arrays: ArrayRecord, model: Model | None = None) -> "Packing":
        """The vector is the trainable parameters of `model`, or all floating-point arrays."""
        return Packing.around(tensors(arrays), model)

    @staticmethod
    def around(named: dict[str, Tensor], model: Model | None = None) -> "Packing":
        """The same of tensors that have been read already."""
        if model is None:
            layout = _floating(named)
            return Packing(layout, named, {name: name for name in layout.names})
        layout = Layout.of(model.module)
        first = {id(p): name for name, p in model.module.named_parameters()}
        state = model.module.state_dict(keep_vars=True)
        home = {n: first[id(v)] for n, v in state.items() if first.get(id(v)) in layout.names}
        return Packing(layout, named, {n: h for n, h in home.items() if n in named})

    @property
    def start(self) -> Tensor:
        """The vector [d] of the record that this was made from."""
        return self.layout.flatten(self.named)

    def record(self, x: Tensor) -> ArrayRecord:
        """The record with `x` [d] in place of the start."""
        views = self.layout.views(x)
        return record(
            {n: views[self.home[n]] if n in self.home else t for n, t in self.named.items()}
        )


def _floating(named: Mapping[str, Tensor]) -> Layout:
    pieces = {name: t for name, t in named.items() if t.is_floating_point()}
    for name in pieces:
        if name.endswith(("running_mean", "running_var")):
            raise InputError(
                f"initial_arrays holds the running statistics {name!r}, which weights that do not "
                "sum to one would push anywhere; use GroupNorm, or track_running_stats=False"
            )
    kinds = {t.dtype for t in pieces.values()}
    if len(kinds) != 1:
        found = ", ".join(sorted(map(str, kinds))) or "none"
        raise InputError(
            f"dtypes of the floating-point arrays in initial_arrays are {found}; "
            "they must be one and the same"
        )
    sizes = [t.numel() for t in pieces.values()]
    return Layout(
        tuple(pieces),
        tuple(t.shape for t in pieces.values()),
        tuple(int(end) for end in np.cumsum([0, *sizes])),
        kinds.pop(),
    )
