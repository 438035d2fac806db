"""The run directory: what an experiment leaves behind, and where.

config.toml      the experiment with all defaults; `turnout run` takes it again
versions.json    of turnout and what it stands on
cells/METHOD/seed-S/
metrics.jsonl         a line for each evaluated round; no times, so that equal runs are equal
timing.jsonl          seconds, on the same rounds
status.json           running, done or diverged
clients.csv           a row a client: data, deliveries, weight, accuracy
classes.csv           a row a class: test accuracy (classification only)
participation.parquet who was asked and who delivered, as trace replay reads it
model.safetensors     the last finite model
summary.json, summary.csv, summary.md, plots/
"""

import platform
import re
import sys
from collections.abc import Iterable
from datetime import datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from turnout import __version__
from turnout.errors import InputError
from turnout.experiments import toml
from turnout.experiments.files import json_text, write

_PACKAGES = ("torch", "numpy", "scikit-learn", "pyarrow", "safetensors")


def create(out: Path | None, name: str) -> Path:
    """A new or empty directory: `out`, or one named by `name` and the time in runs/."""
    folder = out or _fresh(Path("runs"), slug(name))
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise InputError(f"{folder} is not empty; give --out a new folder, or remove this one")
        (folder / "cells").mkdir()
    except OSError as error:
        raise InputError(
            f"{folder} cannot be written: {error.strerror}; give --out a folder that can"
        ) from error
    return folder


def _fresh(parent: Path, name: str) -> Path:
    stem = f"{name}-{datetime.now():%Y%m%d-%H%M%S}"
    candidates = [stem, *(f"{stem}-{more}" for more in range(2, 1000))]
    return next(parent / each for each in candidates if not (parent / each).exists())


def describe(folder: Path, table: dict[str, Any]) -> None:
    """Write what the experiment is and what it runs on."""
    heading = f"# Written by turnout {__version__}; repeat it with: turnout run config.toml\n\n"
    write(folder / "config.toml", heading + toml.dumps(table))
    write(folder / "versions.json", json_text(versions()))


def versions() -> dict[str, Any]:
    """Versions of the software, and the machine."""
    import torch

    found: dict[str, Any] = {"turnout": __version__, "python": platform.python_version()}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = None
    return {
        **found,
        "platform": platform.platform(),
        "processor": torch.backends.cpu.get_cpu_capability(),
        "threads": torch.get_num_threads(),
        "command": sys.argv,
    }


def slug(text: str) -> str:
    """`text` as part of a file's name.

    >>> slug("FedAU (K → ∞)")
    'fedau-k'
    """
    return re.sub(r"[^a-z0-9._=+]+", "-", text.lower()).strip("-.") or "run"


def cell_folders(labels: Iterable[str]) -> dict[str, Path]:
    """A folder for each label, relative to the run directory."""
    folders: dict[str, Path] = {}
    for label in labels:
        stem = Path("cells") / slug(label)
        candidates = [stem, *(stem.with_name(f"{stem.name}-{more}") for more in range(2, 1000))]
        folders[label] = next(each for each in candidates if each not in folders.values())
    return folders
