"""A data set by name: embedded, from a folder, or from the Hub."""

import os
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from turnout.data import hub
from turnout.data.cache import Arrays
from turnout.data.digits import digits
from turnout.data.folder import split_files
from turnout.data.labels import encode
from turnout.data.parquet import histogram, read
from turnout.data.pool import Pool
from turnout.data.source import KNOWN, Source
from turnout.draws import generator
from turnout.errors import InputError, choose, require

DATASETS: dict[str, str] = {
    "digits": "handwritten digits, 1 438 + 359 grey images of 8 × 8, embedded: needs no network",
    **{name: source.summary for name, source in KNOWN.items()},
}
"""The names that need no column names, with a summary of each."""


def load(name: str, folder: str | Path | None = None, **columns: Any) -> tuple[Pool, Pool]:
    """Training and test pools of the data set `name`.

    `name` is one of `DATASETS`, a folder inside `folder` (default: $TURNOUT_DATA), a path to a
    folder, or a repository "owner/name" on the Hub; the first of these that exists is read.
    `columns` are fields of `Source`, such as `image`, `features`, `label` and `client`, and are
    needed for data sets that are not in `DATASETS`.

    >>> train, test = load("digits")
    >>> train.classes
    10
    """
    known = [field.name for field in fields(Source) if field.name != "summary"]
    for column in columns:
        choose(f"field of data set {name!r}:", column, known)
    if name == "digits":
        require(not columns, "fields of data set 'digits'", sorted(columns), "none: it is embedded")
        return digits()
    # From a file, sequences come as lists.
    given: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in columns.items()}
    if isinstance(given.get("features"), str):
        given["features"] = (given["features"],)
    source = replace(_source(name), **given)
    _check(source)
    place = _place(name, source, folder)
    raw = read(split_files(place, source.train, source.config), source)
    if source.test:
        parts = [raw, read(split_files(place, source.test, source.config), source)]
    else:
        parts = _hold_out(raw, source.holdout)
    shapes = [part["inputs"].shape[1:] for part in parts]
    require(
        shapes[1] == shapes[0], "shape of test inputs", shapes[1], f"that of training {shapes[0]}"
    )
    targets, classes = encode([part["labels"] for part in parts], source)
    mean, std = _moments(source, parts[0])

    def pool(part: int, split: str) -> Pool:
        return Pool(
            torch.from_numpy(parts[part]["inputs"]),
            torch.from_numpy(targets[part]),
            mean,
            std,
            classes,
            f"{name} ({split})",
            parts[part].get("owners"),
        )

    return pool(0, "train"), pool(1, "test")


def _source(name: str) -> Source:
    for short, source in KNOWN.items():
        if name in (short, source.repository):
            return source
    # A relative path has the form of a repository; `_place` looks for the folder first.
    return Source(repository=name if name.count("/") == 1 and name[0].isalnum() else None)


def _check(source: Source) -> None:
    if source.image and source.features:
        raise InputError(
            f"image is {source.image!r} and features are {source.features}; give one of the two"
        )
    require(0 < source.holdout < 1, "holdout", source.holdout, "between 0 and 1")


def _place(name: str, source: Source, folder: str | Path | None) -> Path:
    given = folder or os.environ.get("TURNOUT_DATA")
    here: list[str] = []
    if given:
        base = Path(given).expanduser()
        origin = "folder" if folder else "TURNOUT_DATA"
        require(os.path.isdir(base), origin, str(base), "a folder that exists")
        repository = source.repository or name
        for candidate in (name, repository, repository.rpartition("/")[2]):
            if os.path.isdir(base / candidate):
                return base / candidate
        here = sorted(path.name for path in base.iterdir() if path.is_dir())
        if folder:
            raise InputError(
                f"folder {base} has no data set {name!r}; it holds {', '.join(here) or 'none'}"
            )
    if os.path.isdir(Path(name).expanduser()):  # false, not an error, for a name too long
        return Path(name).expanduser()
    if source.repository is None:
        choose("data set", name, {*DATASETS, *here})
        raise AssertionError("unreachable: every known name has a place")
    splits = [source.train, source.test] if source.test else [source.train]
    return hub.snapshot(source.repository, splits, source.config)


def _hold_out(raw: Arrays, share: float) -> list[Arrays]:
    rows = len(raw["labels"])
    order = generator(0, "held-out test set").permutation(rows)
    size = round(share * rows)
    require(0 < size < rows, "holdout", share, f"such that of {rows} samples both sets get some")
    kept, held_out = np.sort(order[size:]), np.sort(order[:size])
    columns = {name: values for name, values in raw.items() if name != "histogram"}
    train = {name: values[kept] for name, values in columns.items()}
    if "histogram" in raw:
        train["histogram"] = histogram(train["inputs"])
    return [train, {name: values[held_out] for name, values in columns.items()}]


def _moments(source: Source, train: Arrays) -> tuple[Tensor | None, Tensor | None]:
    if "histogram" not in train:
        return None, None
    channels = train["inputs"].shape[1]
    counts: NDArray[np.int64] = train["histogram"]
    levels = np.arange(256) / 255
    share = counts / counts.sum(1, keepdims=True)
    mean = share @ levels
    std = np.sqrt(share @ levels**2 - mean**2)
    found = []
    for field, measured in (("mean", mean), ("std", std)):
        asked = getattr(source, field)
        values = measured if asked is None else np.atleast_1d(np.asarray(asked, dtype=np.float64))
        require(
            len(values) == channels, field, asked, f"one number for each of {channels} channels"
        )
        found.append(torch.from_numpy(values).float())
    require(bool((found[1] > 0).all()), "std", found[1].tolist(), "above 0 for every channel")
    return found[0], found[1]
