"""Decoded arrays kept on disk, so that a second start only maps them into memory."""

import hashlib
import json
import os
import shutil
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Arrays = dict[str, NDArray[Any]]


def cache_folder() -> Path:
    """$TURNOUT_CACHE, else turnout in the user's cache folder."""
    own = os.environ.get("TURNOUT_CACHE")
    if own:
        return Path(own).expanduser()
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "turnout"


def remembered(key: Any, make: Callable[[], Arrays]) -> Arrays:
    """`make()`, or what it returned when it was last asked with the same `key` (plain JSON)."""
    digest = hashlib.blake2b(json.dumps(key).encode(), digest_size=16).hexdigest()
    place = cache_folder() / digest
    found = _read(place)
    if found is not None:
        return found
    made = make()
    try:
        _write(place, made)
    except OSError as error:
        warnings.warn(
            f"decoded data could not be kept in {place} ({error}); the next start decodes them "
            "again, unless TURNOUT_CACHE names a folder that can be written",
            stacklevel=2,
        )
    return made


def _read(place: Path) -> Arrays | None:
    try:
        names = json.loads((place / "names.json").read_text())
        # Copy-on-write: nothing is read before it is used, and nothing can reach the files.
        return {name: np.load(place / f"{name}.npy", mmap_mode="c") for name in names}
    except (OSError, ValueError, EOFError):
        return None  # not there, or damaged: make it anew


def _write(place: Path, arrays: Arrays) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(dir=place.parent, prefix="draft-"))
    try:
        for name, values in arrays.items():
            np.save(draft / f"{name}.npy", values, allow_pickle=False)
        (draft / "names.json").write_text(json.dumps(list(arrays)))
        # A folder appears under its name only when it is complete. Whatever is there by now is
        # damaged, or the same data from another process.
        shutil.rmtree(place, ignore_errors=True)
        draft.rename(place)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
