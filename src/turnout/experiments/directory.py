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
report.html           all of it to look at, in one file
"""

import json
import platform
import re
import sys
import tomllib
from collections.abc import Iterable, Iterator
from datetime import datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from turnout import __version__
from turnout.errors import InputError
from turnout.experiments import toml
from turnout.experiments.files import json_text, write

CONFIG, REPORT, VERSIONS = "config.toml", "report.html", "versions.json"

_PACKAGES = ("torch", "numpy", "scikit-learn", "pyarrow", "safetensors")


def create(out: Path | None, name: str) -> Path:
    """A new or empty directory: `out`, or one named by `name` and the time in runs/."""
    folder = out or _fresh(Path("runs"), slug(name))
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.glob("[!.]*")):
            raise InputError(f"{folder} is not empty; give --out a new folder, or remove this one")
    except OSError as error:
        raise InputError(
            f"{folder} cannot be written: {error.strerror}; give --out a folder that can"
        ) from error
    return folder


_LOOKS = ("name", "tail", "plots", "checkpoint_seconds", "table_limit", "track")
"""Keys of [run] that a resumed run may change: nothing that is computed depends on them."""


def reopen(out: Path | None, table: dict[str, Any]) -> Path:
    """The run directory `out`, if the experiment in it is the one of `table`.

    One in which nothing has begun is as good as new, so that a job may always say --resume.
    """
    if out is None:
        raise InputError(
            "--out is missing; with --resume it must be the run directory to go on with"
        )
    there = {path.name for path in out.glob("[!.]*")}
    if not there:
        return create(out, "")
    if there == {VERSIONS}:  # It ended between the two files that say what it is.
        return out
    try:
        before = tomllib.loads((out / CONFIG).read_text(encoding="utf-8"))
    except (OSError, tomllib.TOMLDecodeError) as error:
        raise InputError(
            f"{out} cannot be resumed ({error}); --out must be a run directory with its config.toml"
        ) from error
    now = tomllib.loads(toml.dumps(table))
    for each in (before, now):
        each["run"] = {key: value for key, value in each["run"].items() if key not in _LOOKS}
    changed = list(differences(before, now))
    if changed:
        raise InputError(f"the experiment in {out} is another one: {'; '.join(changed)}")
    return out


def differences(before: Any, now: Any, path: str = "") -> Iterator[str]:
    """Where two tables differ, in words.

    >>> list(differences({"run": {"rounds": 9}}, {"run": {"rounds": 5, "seeds": [1]}}))
    ['run.rounds was 9 and is 5', 'run.seeds was not there and is [1]']
    """
    if isinstance(before, dict) and isinstance(now, dict):
        for key in sorted(before.keys() | now.keys()):
            inside = f"{path}.{key}" if path else key
            yield from differences(before.get(key, _ABSENT), now.get(key, _ABSENT), inside)
    elif isinstance(before, list) and isinstance(now, list) and len(before) == len(now):
        for place, (old, new) in enumerate(zip(before, now, strict=True)):
            yield from differences(old, new, f"{path}.{place}")
    elif before != now:
        yield f"{path} was {before!r} and is {now!r}"


class _Absent:
    def __repr__(self) -> str:
        return "not there"


_ABSENT = _Absent()


def _fresh(parent: Path, name: str) -> Path:
    stem = f"{name}-{datetime.now():%Y%m%d-%H%M%S}"
    candidates = [stem, *(f"{stem}-{more}" for more in range(2, 1000))]
    return next(parent / each for each in candidates if not (parent / each).exists())


def describe(folder: Path, table: dict[str, Any]) -> None:
    """Write what the experiment is and what it runs on."""
    heading = f"# Written by turnout {__version__}; repeat it with: turnout run config.toml\n\n"
    write(folder / VERSIONS, json_text(versions()))
    write(folder / CONFIG, heading + toml.dumps(table))  # last: with it, there is a run to resume


def threads_of(folder: Path) -> int | None:
    """With how many of torch's threads the run began; None if that cannot be told."""
    try:
        found = json.loads((folder / VERSIONS).read_bytes())["threads"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
    return found if isinstance(found, int) and found >= 1 else None


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
    return re.sub(r"[^a-z0-9._+]+", "-", text.lower()).strip("-.") or "run"


def cell_folders(labels: Iterable[str]) -> dict[str, Path]:
    """A folder for each label, relative to the run directory."""
    folders: dict[str, Path] = {}
    for label in labels:
        stem = Path("cells") / slug(label)
        candidates = [stem, *(stem.with_name(f"{stem.name}-{more}") for more in range(2, 1000))]
        folders[label] = next(each for each in candidates if each not in folders.values())
    return folders
