"""Which Parquet files of a folder in the Hub's layout make up a split."""

import re
from pathlib import Path
from typing import NamedTuple

from turnout.errors import InputError

_SHARD = re.compile(r"(?P<split>.+)-(?P<number>\d{5})-of-(?P<total>\d{5})(-[0-9a-f]+)?")
_UNNAMED = ("", "data", "default")  # folders that are no configuration of their own


class _File(NamedTuple):
    path: Path
    config: str
    split: str
    number: int
    total: int | None


def split_files(folder: Path, split: str, config: str | None = None) -> list[Path]:
    """The files of `split`, in order.

    These layouts are read, each also inside a folder named for a configuration, or `data`:
    `train.parquet`, `train-00000-of-00002.parquet`, and `train/0000.parquet`.
    """
    found = [_describe(path, folder) for path in sorted(folder.rglob("*.parquet"))]
    wanted = [file for file in found if file.split == split]
    if not wanted:
        splits = ", ".join(sorted({file.split for file in found})) or "no Parquet files"
        raise InputError(
            f"data folder {folder} has no file of split {split!r}; it holds {splits}, and should "
            f"hold {split}.parquet or {split}-00000-of-0000N.parquet"
        )
    wanted = _of_config(wanted, config, folder)
    total = wanted[0].total
    numbers = [file.number for file in wanted]
    if total is not None and numbers != list(range(total)):
        raise InputError(
            f"data folder {folder} has {len(wanted)} files of split {split!r}; there must be the "
            f"{total} that their names announce"
        )
    return [file.path for file in wanted]


def _describe(path: Path, folder: Path) -> _File:
    place, stem = path.relative_to(folder).parent, path.name.removesuffix(".parquet")
    shard = _SHARD.fullmatch(stem)
    if shard:
        split, number, total = shard["split"], int(shard["number"]), int(shard["total"])
        return _File(path, _name(place), split, number, total)
    if stem.isdigit() and place.name:  # the Hub's own conversion: config/split/0000.parquet
        return _File(path, _name(place.parent), place.name, int(stem), None)
    return _File(path, _name(place), stem, 0, None)


def _name(place: Path) -> str:
    return place.as_posix() if place.parts else ""


def _of_config(files: list[_File], config: str | None, folder: Path) -> list[_File]:
    by_config: dict[str, list[_File]] = {}
    for file in files:
        by_config.setdefault(file.config, []).append(file)
    if config is not None and config in by_config:
        return by_config[config]
    # A copy of one configuration often lies there without its name.
    unnamed = [name for name in _UNNAMED if name in by_config]
    if unnamed:
        return by_config[unnamed[0]]
    if config is None and len(by_config) == 1:
        return files
    names = ", ".join(sorted(by_config))
    raise InputError(f"config is {config!r}; for {folder} it must be one of {names}")
