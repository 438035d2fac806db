"""Tables with a vector for each client: in memory, or in a file where they are large.

A file is read and written row by row, and not mapped: pages of a mapping that have been written
count as memory of the process until the kernel thinks of them, which with a table of some gigabytes
is too late. What goes through `read` and `write` is in the kernel's cache, which gives way at once.
"""

import os
import shutil
import tempfile
import weakref
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from turnout.algorithm import Table, in_memory
from turnout.errors import InputError, WriteError, require
from turnout.room import amount

LIMIT = 1 << 30


@dataclass(frozen=True)
class Tables:
    """Makes tables: in memory up to `limit` bytes each, in files of `folder` above.

    >>> isinstance(Tables(limit=100).zeros(3, torch.zeros(8)), Tensor)
    True
    >>> table = Tables(limit=10).zeros(3, torch.zeros(8))
    >>> table[torch.tensor([2])] = torch.ones(1, 8)
    >>> table[torch.tensor([0, 2])].sum(1)
    tensor([0., 8.])
    """

    limit: int = LIMIT
    folder: Path | None = None
    """None: the system's folder for temporary files. Files have no names, and end with the process."""

    def __post_init__(self) -> None:
        require(self.limit >= 0, "limit of tables", self.limit, "0 or more bytes")

    def zeros(self, clients: int, like: Tensor) -> Tensor | Table:
        """A table of zeros: a vector like this one for each client."""
        if clients * like.nbytes <= self.limit:
            return in_memory(clients, like)
        folder = Path(tempfile.gettempdir()) if self.folder is None else self.folder
        return FileTable(clients, like, folder)


class FileTable:
    """A table in a file without a name. Rows that have never been written take no room."""

    def __init__(self, clients: int, like: Tensor, folder: Path) -> None:
        self.shape: torch.Size = torch.Size((clients, len(like)))
        self._like, self._lock, self._folder = like.new_empty(0), Lock(), folder
        self._row = like.nbytes
        try:
            free = shutil.disk_usage(folder).free
            if free < self.nbytes:
                raise InputError(
                    f"a table of {clients} × {len(like)} numbers takes {amount(self.nbytes)}, and "
                    f"{folder} has {amount(free)} left; it must be in a folder that has room for it"
                )
            # Without a buffer of Python's own: rows go where they are to go, once.
            self._file = tempfile.TemporaryFile(dir=folder, buffering=0)  # noqa: SIM115
            weakref.finalize(self, self._file.close)
            os.truncate(self._file.fileno(), self.nbytes)
        except OSError as error:
            raise InputError(f"{self._unfit(error)}; it must be a folder that can") from error

    def __len__(self) -> int:
        return self.shape[0]

    @property
    def nbytes(self) -> int:
        return len(self) * self._row

    def __getitem__(self, rows: Tensor, /) -> Tensor:
        block = self._like.new_empty(len(rows), self.shape[1], device="cpu")
        with self._lock:
            for row, vector in zip(rows.tolist(), block.numpy(), strict=True):
                self._read(row, vector)
        return block.to(self._like.device)

    def __setitem__(self, rows: Tensor, block: Tensor, /) -> None:
        values = block.detach().to(self._like).cpu().contiguous().numpy()
        with self._lock:
            for row, vector in zip(rows.tolist(), values, strict=True):
                self._write(row, vector)

    def read(self, start: int, stop: int) -> NDArray[Any]:
        kind = self._like.cpu().numpy().dtype
        block = np.empty((min(stop, len(self)) - start, self.shape[1]), kind)
        with self._lock:
            self._read(start, block)
        return block

    def fill(self, start: int, block: NDArray[Any]) -> None:
        with self._lock:
            self._write(start, block)

    def _read(self, row: int, into: NDArray[Any]) -> None:
        left = into.data.cast("B")
        self._file.seek(row * self._row)
        while len(left):
            left = left[self._file.readinto(left) :]

    def _write(self, row: int, vectors: NDArray[Any]) -> None:
        left = vectors.data.cast("B")
        try:
            self._file.seek(row * self._row)
            while len(left):
                left = left[self._file.write(left) :]
        except OSError as error:
            raise WriteError(self._unfit(error)) from error

    def _unfit(self, error: OSError) -> str:
        return f"{self._folder} cannot hold a table of {amount(self.nbytes)}: {error.strerror}"
