"""What a model is worth: on test data, over clients, and for those who never came."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.func import functional_call

from turnout.data.pool import Pool
from turnout.errors import require
from turnout.flat import Layout
from turnout.models import Model
from turnout.models.losses import correct
from turnout.products import quick
from turnout.world import World

Floats = NDArray[np.float64]
Metrics = dict[str, Any]  # numbers and short lists of numbers, as JSON holds them

_CHUNK = 2048
_KEEP_BYTES = 1 << 28  # test inputs below this stay normalised between evaluations


@dataclass(frozen=True)
class Scores:
    """Per-sample losses and, for classification, hits."""

    loss: Floats
    hit: Floats | None


@dataclass(frozen=True)
class ClientScores:
    """Means over each client's own data, [N]."""

    loss: Floats
    accuracy: Floats | None


@dataclass(frozen=True)
class Evaluator:
    """Evaluates models of one world; keeps what stays the same between evaluations."""

    world: World
    model: Model
    layout: Layout
    dtype: torch.dtype = torch.float32
    client_samples: int | None = None
    """Evaluate clients on their first so many samples; None means all of them."""

    def __post_init__(self) -> None:
        some = self.client_samples is None or self.client_samples >= 1
        require(some, "client_samples", self.client_samples, "at least 1, or none for all")

    def test(self, x: Tensor) -> Metrics:
        """Loss and accuracy on the test set."""
        scores = self._scores(x, self.world.test, self._test_inputs)
        metrics: Metrics = {"test_loss": float(scores.loss.mean())}
        if scores.hit is not None:
            metrics["test_accuracy"] = float(scores.hit.mean())
        return metrics

    def classes(self, x: Tensor) -> list[float | None]:
        """Test accuracy of each class; None for one without test samples."""
        scores = self._scores(x, self.world.test, self._test_inputs)
        if scores.hit is None:
            return []
        labels = self.world.test.targets.numpy()
        count = max(self.world.test.classes or 0, int(labels.max()) + 1)
        held = np.bincount(labels, minlength=count)
        hits = np.bincount(labels, weights=scores.hit, minlength=count)
        return [float(hit / n) if n else None for hit, n in zip(hits, held, strict=True)]

    def clients(self, x: Tensor) -> ClientScores:
        """Loss and accuracy of each client's own training data."""
        scores = self._scores(x, self._client_pool, None)
        return ClientScores(
            _segment_means(scores.loss, self._client_offsets),
            None if scores.hit is None else _segment_means(scores.hit, self._client_offsets),
        )

    @np.errstate(over="ignore", invalid="ignore")  # losses overflow before the model does
    def over_clients(self, scores: ClientScores, delivered: NDArray[np.int32]) -> Metrics:
        """The objective, its spread over clients, and how those fare who came often or never.

        `delivered` counts how often each client's update has arrived so far.
        """
        shares = self.world.shares
        weights = np.full(len(scores.loss), 1 / len(scores.loss)) if shares is None else shares
        metrics: Metrics = {
            "train_loss": float(weights @ scores.loss),
            "spread_loss": float(scores.loss.std()),
        }
        if scores.accuracy is None:
            return metrics
        metrics["train_accuracy"] = float(weights @ scores.accuracy)
        metrics["spread_accuracy"] = float(scores.accuracy.std())
        often = np.argsort(delivered, kind="stable")
        metrics["decile_accuracy"] = [
            float(scores.accuracy[part].mean())
            for part in np.array_split(often, min(10, len(often)))
        ]
        never = delivered == 0
        metrics["never_seen"] = int(never.sum())
        if never.any():
            metrics["never_seen_accuracy"] = float(scores.accuracy[never].mean())
        return metrics

    @cached_property
    def _test_inputs(self) -> Tensor | None:
        pool = self.world.test
        if pool.inputs.numel() * self.dtype.itemsize > _KEEP_BYTES:
            return None
        return pool.normalise(pool.inputs, self.dtype)

    @cached_property
    def _client_offsets(self) -> NDArray[np.int64]:
        sizes = np.diff(self.world.offsets)
        kept = sizes if self.client_samples is None else np.minimum(sizes, self.client_samples)
        return np.concatenate([[0], np.cumsum(kept)])

    @cached_property
    def _client_pool(self) -> Pool:
        if self.client_samples is None:
            return self.world.train
        first, sizes = self.world.offsets[:-1], np.diff(self._client_offsets)
        rows = np.repeat(first - self._client_offsets[:-1], sizes) + np.arange(sizes.sum())
        return self.world.train.take(rows)

    def _scores(self, x: Tensor, pool: Pool, ready: Tensor | None) -> Scores:
        return score(self.model, self.layout, x, pool, self.dtype, ready)


def score(
    model: Model,
    layout: Layout,
    x: Tensor,
    pool: Pool,
    dtype: torch.dtype,
    ready: Tensor | None = None,
    places: Tensor | None = None,
) -> Scores:
    """How the model x does on each sample of `pool`, or on those in these places.

    `ready` are its inputs, normalised.
    """
    module = model.module
    views = layout.views(x)
    training = module.training
    losses, hits = [], []
    module.eval()
    try:
        with torch.inference_mode(), quick(layout.size):
            for start in range(0, len(pool if places is None else places), _CHUNK):
                chunk = slice(start, start + _CHUNK)
                rows = chunk if places is None else places[chunk]
                inputs = pool.normalise(pool.inputs[rows], dtype) if ready is None else ready[rows]
                targets = pool.targets[rows]
                if targets.is_floating_point():
                    targets = targets.to(dtype)
                output = functional_call(module, views, (inputs,))
                losses.append(model.loss(output, targets))
                if model.classification:
                    hits.append(correct(output, targets))
    finally:
        module.train(training)
    return Scores(
        torch.cat(losses).double().numpy(),
        torch.cat(hits).double().numpy() if hits else None,
    )


def _segment_means(values: Floats, offsets: NDArray[np.int64]) -> Floats:
    sums: Floats = np.add.reduceat(values, offsets[:-1])
    return sums / np.diff(offsets)
