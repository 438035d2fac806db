"""Everything that a run is, on disk, atomically.

A checkpoint is a directory of safetensors files and one JSON manifest: nothing in it can execute.
It is written under a temporary name, flushed to the disk and then renamed, so that a directory
with a checkpoint's name is complete whatever killed the writer. Every file has a checksum in the
manifest, and the manifest has one of its own: what has been damaged since is noticed, said, and
the checkpoint before it is used.

State is a tree: dicts (or dataclasses) of tensors, numpy arrays, numbers, strings and None. A big
table with a row a client is cut into blocks, a file each; blocks none of whose clients have
delivered since the previous checkpoint are linked to its files and not written again.
"""

import json
import os
import shutil
import tempfile
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields, is_dataclass
from hashlib import blake2b
from math import inf
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.numpy import load as load_tensors
from safetensors.numpy import save as save_tensors
from torch import Tensor

from turnout.algorithm import Table, Zeros, in_memory
from turnout.errors import CheckpointError, InputError, WriteError

FORMAT = 1
MANIFEST = "manifest.json"
BLOCK_BYTES = 16 << 20
"""Tables with a row a client that are larger than this are cut into blocks of about this size."""

Tree = Any
Array = NDArray[Any]
Arrays = dict[str, Array | Table]


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint that was read and found whole."""

    path: Path
    round: int
    tree: Tree
    notes: dict[str, Any]
    """What the writer said beside the state: positions in files, a digest of the configuration."""


def save(
    folder: Path,
    round: int,
    state: Any,
    notes: dict[str, Any] | None = None,
    delivered: NDArray[Any] | None = None,
    tables: Collection[str] = (),
    keep: int = 2,
) -> Path:
    """Write `state` after `round` rounds below `folder` and keep the newest `keep` checkpoints.

    `tables` are the dotted names of arrays with a row a client that change by that client's
    deliveries only, and `delivered` counts these: blocks of large tables in which no count has
    changed since the newest checkpoint are not written again.
    """
    final = folder / f"round-{round:09d}"
    if final.exists():  # From before a resume. Runs are exact: if it is whole, it is this one.
        try:
            with _strange():
                _verify(final)
            return final
        except CheckpointError:
            shutil.rmtree(final)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for left in folder.glob(".writing-*"):
            shutil.rmtree(left, ignore_errors=True)
        draft = Path(tempfile.mkdtemp(prefix=".writing-", dir=folder))
    except OSError as error:
        raise _failed(folder, error) from error
    try:
        _write(draft, folder, round, state, notes or {}, delivered, tables)
        os.rename(draft, final)
        _sync_folder(folder)
    except OSError as error:
        shutil.rmtree(draft, ignore_errors=True)
        raise _failed(folder, error) from error
    for old in _present(folder)[keep:]:
        shutil.rmtree(old, ignore_errors=True)
    return final


def load(
    folder: Path,
    warn: Callable[[str], None] = lambda sentence: None,
    made: Callable[[str], Zeros] = lambda name: in_memory,
    until: int | None = None,
) -> Checkpoint | None:
    """The newest whole checkpoint below `folder`; None if there is none at all.

    With `until`, of those after no more than so many rounds.

    A damaged one is reported to `warn` and passed over. If all are damaged this is a
    `CheckpointError`, and nothing is touched. `made` says, by its
    name, what makes a large table.
    """
    found = [path for path in _present(folder) if until is None or _rounds(path) <= until]
    for path in found:
        try:
            with _strange():
                return _read(path, made)
        except CheckpointError as error:
            warn(f"checkpoint {path.name} is damaged ({error}); trying the one before it")
    if found:
        raise CheckpointError(
            f"every checkpoint in {folder} is damaged ({len(found)} tried); the files are left as "
            "they are, and without them the rounds are played from the first one"
        )
    return None


def _present(folder: Path) -> list[Path]:
    """Checkpoints below `folder`, newest first."""
    return sorted(folder.glob("round-*"), reverse=True)


def drop(folder: Path, after: int) -> None:
    """Remove checkpoints after more than so many rounds, which are going to be played again."""
    for path in _present(folder):
        if _rounds(path) > after:
            shutil.rmtree(path)


def _rounds(path: Path) -> float:
    number = path.name.removeprefix("round-")
    return int(number) if number.isdecimal() else inf


def size(state: Any) -> int:
    """About how many bytes a checkpoint of `state` takes, with nothing linked."""
    arrays: Arrays = {}
    _describe(state, "state", arrays)
    return sum(array.nbytes for array in arrays.values())


def _failed(folder: Path, error: OSError) -> WriteError:
    return WriteError(
        f"no checkpoint could be written in {folder}: {error.strerror or error}; "
        "the last one is intact"
    )


# Writing ------------------------------------------------------------------------------------------


def _write(
    draft: Path,
    folder: Path,
    round: int,
    state: Any,
    notes: dict[str, Any],
    delivered: NDArray[Any] | None,
    by_client: Collection[str],
) -> None:
    arrays: Arrays = {}
    tree = _describe(state, "state", arrays)
    if delivered is not None:
        arrays["delivered"] = delivered
    previous = _newest_manifest(folder)
    files: dict[str, Any] = {}
    small: dict[str, Array] = {}
    tables: dict[str, Any] = {}
    changed = _changed(folder, previous, delivered)
    for name, array in arrays.items():
        if name not in by_client or array.nbytes <= BLOCK_BYTES:
            small[name] = _part(array, 0, len(array)) if isinstance(array, Table) else array
            continue
        rows = max(1, BLOCK_BYTES * len(array) // array.nbytes)
        kind = _part(array, 0, 1).dtype.str
        tables[name] = {"rows": rows, "shape": list(array.shape), "dtype": kind}
        for number, start in enumerate(range(0, len(array), rows)):
            file = f"{name}.{number}.safetensors"
            part = slice(start, start + rows)
            before = None if previous is None else previous["files"].get(file)
            same_cut = previous is not None and previous["tables"].get(name) == tables[name]
            if before and same_cut and changed is not None and not changed[part].any():
                os.link(_present(folder)[0] / file, draft / file)
                files[file] = before
            else:
                block = _part(array, start, start + rows)
                files[file] = _put(draft / file, save_tensors({"block": block}))
    files["state.safetensors"] = _put(draft / "state.safetensors", save_tensors(small))
    body = {
        "format": FORMAT,
        "round": round,
        "notes": notes,
        "tree": tree,
        "tables": tables,
        "whole": [name for name in by_client if name in small],
        "files": files,
    }
    sealed = {"checksum": _seal(body), "body": body}
    _put(draft / MANIFEST, json.dumps(sealed, indent=1).encode())
    _sync_folder(draft)


def _part(table: Array | Table, start: int, stop: int) -> Array:
    return table.read(start, stop) if isinstance(table, Table) else table[start:stop]


def _describe(node: Any, name: str, arrays: Arrays) -> Any:
    """JSON that stands for `node`; its arrays go to `arrays` under dotted names."""
    if isinstance(node, Tensor):
        arrays[name] = node.detach().cpu().contiguous().numpy()
        return {"tensor": name}
    if isinstance(node, Table):
        arrays[name] = node
        return {"tensor": name}
    if isinstance(node, np.ndarray):
        arrays[name] = np.ascontiguousarray(node).reshape(node.shape)
        return {"array": name}
    if is_dataclass(node) and not isinstance(node, type):
        node = {field.name: getattr(node, field.name) for field in fields(node)}
    if isinstance(node, dict) and all(isinstance(key, str) for key in node):
        return {"dict": {k: _describe(v, f"{name}.{k}", arrays) for k, v in node.items()}}
    if isinstance(node, np.generic):
        node = node.item()
    if node is None or isinstance(node, bool | int | float | str):
        return {"value": node}
    raise TypeError(f"{name} is a {type(node).__name__}; a checkpoint cannot hold it")


def _put(path: Path, content: bytes) -> dict[str, Any]:
    with open(path, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    return {"bytes": len(content), "checksum": _digest(content)}


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _changed(
    folder: Path, previous: dict[str, Any] | None, delivered: NDArray[Any] | None
) -> NDArray[np.bool_] | None:
    """Which clients have delivered since the newest checkpoint; None where it cannot be told."""
    if previous is None or delivered is None:
        return None
    try:
        before = _load_file(_present(folder)[0], "state.safetensors", previous)["delivered"]
    except (CheckpointError, KeyError):
        return None
    return before != delivered if before.shape == delivered.shape else None


# Reading ------------------------------------------------------------------------------------------


def _verify(path: Path) -> None:
    """Raise a `CheckpointError` unless it is whole."""
    body = _manifest(path)
    for file in body["files"]:
        _load_file(path, file, body)


def _read(path: Path, made: Callable[[str], Zeros]) -> Checkpoint:
    body = _manifest(path)
    arrays: Arrays = {
        # Theirs may be read-only.
        name: array.copy()
        for name, array in _load_file(path, "state.safetensors", body).items()
    }
    for name, cut in body["tables"].items():
        clients, size = cut["shape"]
        held = _made(made(name), clients, size, cut["dtype"])
        for number, start in enumerate(range(0, clients, cut["rows"])):
            block = _load_file(path, f"{name}.{number}.safetensors", body)["block"]
            _fill(held, start, block)
        arrays[name] = held
    for name in body.get("whole", ()):
        small = arrays[name]
        assert isinstance(small, np.ndarray)  # as it has just been read
        arrays[name] = _made(made(name), len(small), small.shape[1], small.dtype.str)
        _fill(arrays[name], 0, small)
    return Checkpoint(path, body["round"], _rebuild(body["tree"], arrays), body["notes"])


def _made(zeros: Zeros, clients: int, size: int, kind: str) -> Array | Table:
    held = zeros(clients, torch.from_numpy(np.zeros(size, dtype=np.dtype(kind))))
    return held.numpy() if isinstance(held, Tensor) else held


def _fill(table: Array | Table, start: int, block: Array) -> None:
    if isinstance(table, Table):
        table.fill(start, block)
    else:
        table[start : start + len(block)] = block


def _manifest(path: Path) -> dict[str, Any]:
    try:
        sealed = json.loads((path / MANIFEST).read_bytes())
        body: dict[str, Any] = sealed["body"]
        intact = sealed["checksum"] == _seal(body)
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise CheckpointError(f"{MANIFEST} cannot be read: {type(error).__name__}") from error
    if not intact:
        raise CheckpointError(f"{MANIFEST} does not match its checksum")
    if not isinstance(body, dict) or body.get("format") != FORMAT:
        found = body.get("format") if isinstance(body, dict) else None
        raise CheckpointError(f"format is {found!r}; this version reads {FORMAT}")
    if any(not isinstance(body.get(key), kind) for key, kind in _KINDS.items()):
        raise CheckpointError(f"{MANIFEST} lacks what this format has")
    return body


_KINDS = {"round": int, "notes": dict, "tree": dict, "tables": dict, "files": dict}


@contextmanager
def _strange() -> Iterator[None]:
    """Who can make up a manifest can make up its checksum: what does not fit together is damage."""
    try:
        yield
    except (CheckpointError, InputError, OSError):
        raise
    except Exception as error:
        raise CheckpointError(f"its files do not fit together: {type(error).__name__}") from error


def _newest_manifest(folder: Path) -> dict[str, Any] | None:
    for path in _present(folder)[:1]:
        try:
            return _manifest(path)
        except CheckpointError:
            return None
    return None


def _load_file(path: Path, file: str, body: dict[str, Any]) -> dict[str, Array]:
    try:
        content = (path / file).read_bytes()
    except OSError as error:
        raise CheckpointError(f"{file} cannot be read: {error.strerror}") from error
    expected = body["files"].get(file)
    if not isinstance(expected, dict) or len(content) != expected.get("bytes"):
        raise CheckpointError(f"{file} has {len(content)} bytes, which is not what was written")
    if _digest(content) != expected.get("checksum"):
        raise CheckpointError(f"{file} does not match its checksum")
    loaded: dict[str, Array] = load_tensors(content)
    return loaded


def _rebuild(node: dict[str, Any], arrays: Arrays) -> Tree:
    ((kind, value),) = node.items()
    if kind == "tensor":
        held = arrays[value]
        return torch.from_numpy(held) if isinstance(held, np.ndarray) else held
    if kind == "array":
        return arrays[value]
    if kind == "dict":
        return {name: _rebuild(child, arrays) for name, child in value.items()}
    return value


def _digest(content: bytes) -> str:
    return blake2b(content, digest_size=16).hexdigest()


def _seal(body: dict[str, Any]) -> str:
    return _digest(json.dumps(body, sort_keys=True).encode())
