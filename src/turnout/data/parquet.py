"""Parquet files to arrays: images or features, labels, and whose each sample is."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from turnout.data.cache import Arrays, remembered
from turnout.data.images import decode
from turnout.data.source import Source
from turnout.errors import InputError

_VERSION = 1  # of what is kept in the cache
_BATCH = 1024


def read(files: Sequence[Path], source: Source) -> Arrays:
    """`inputs`, `labels`, `owners` if there is a client column, `histogram` of images; cached."""
    stats = [(str(file.resolve()), file.stat()) for file in files]
    key = {
        "version": _VERSION,
        "files": [[name, stat.st_size, stat.st_mtime_ns] for name, stat in stats],
        "columns": [source.image, list(source.features), source.label, source.client],
    }
    return remembered(key, lambda: _read(files, source))


def _read(files: Sequence[Path], source: Source) -> Arrays:
    wanted = [source.image] if source.image else list(source.features)
    columns = [*wanted, source.label, *([source.client] if source.client else [])]
    for file in files:
        _check_columns(file, columns, source)
    where = files[0].name if len(files) == 1 else f"{files[0].parent.name}/{files[0].name} …"
    arrays: Arrays = {}
    if source.image:
        arrays["inputs"] = decode(_image_bytes(files, source.image), where)
        arrays["histogram"] = histogram(arrays["inputs"])
    else:
        parts = [_numbers(files, name, where) for name in source.features]
        arrays["inputs"] = np.concatenate(parts, axis=1).astype(np.float32)
    arrays["labels"] = _values(files, source.label, where)
    if source.client:
        arrays["owners"] = _values(files, source.client, where)
    return arrays


def _check_columns(file: Path, columns: Sequence[str], source: Source) -> None:
    from pyarrow import ArrowException
    from pyarrow.parquet import ParquetFile

    try:
        with ParquetFile(file) as parquet:
            names, rows = parquet.schema_arrow.names, parquet.metadata.num_rows
    except (ArrowException, OSError) as error:
        raise InputError(
            f"data file {file} cannot be read ({str(error).splitlines()[0]}); it must be Parquet"
        ) from None
    missing = [column for column in columns if column not in names]
    if missing:
        raise InputError(
            f"column {missing[0]!r} is not in {file}; the columns there are {', '.join(names)}"
        )
    if not source.image and not source.features:
        raise InputError(
            f"data set has neither `image` nor `features`; name the column of images or those of "
            f"numbers among {', '.join(names)} in {file}"
        )
    if not rows:
        raise InputError(f"data file {file} has no rows; it must have at least one")


def _image_bytes(files: Sequence[Path], column: str) -> Iterator[list[bytes | None]]:
    import pyarrow as pa
    from pyarrow.parquet import ParquetFile

    for file in files:
        with ParquetFile(file) as parquet:
            for batch in parquet.iter_batches(_BATCH, columns=[column]):
                values = batch.column(0)
                kind = values.type
                if pa.types.is_struct(kind) and kind.get_field_index("bytes") >= 0:
                    values = values.field("bytes")
                elif not (pa.types.is_binary(kind) or pa.types.is_large_binary(kind)):
                    raise InputError(
                        f"column {column!r} of {file} holds {kind}; images must be files as bytes, "
                        "or structs with `bytes`; numbers go by `features`"
                    )
                yield values.to_pylist()


def _column(files: Sequence[Path], column: str, where: str) -> Any:
    import pyarrow as pa
    from pyarrow.parquet import read_table

    chunks = [read_table(file, columns=[column]).column(0) for file in files]
    values = pa.concat_arrays([chunk for part in chunks for chunk in part.chunks])
    if values.null_count:
        row = values.is_null().to_pylist().index(True)
        raise InputError(
            f"column {column!r} has no value in row {row} of {where}; every sample must have one"
        )
    return values


def _numbers(files: Sequence[Path], column: str, where: str) -> NDArray[Any]:
    """One column of features as [n, width]."""
    import pyarrow as pa

    values = _column(files, column, where)
    kind, rows = values.type, len(values)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        lengths = {len(row) for row in values.to_pylist()}
        if len(lengths) != 1:
            raise InputError(
                f"column {column!r} of {where} holds lists of {min(lengths)} to {max(lengths)} "
                "numbers; all must be equally long"
            )
        values, kind = values.flatten(), kind.value_type
    numeric = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)
    if not numeric or values.null_count:
        found = kind if not numeric else "lists with missing values"
        raise InputError(f"column {column!r} of {where} holds {found}; features must be numbers")
    table: NDArray[Any] = values.to_numpy(zero_copy_only=False).reshape(rows, -1)
    if not np.isfinite(table).all():
        row = int(np.argmin(np.isfinite(table).all(1)))
        raise InputError(
            f"column {column!r} has NaN or an infinite value in row {row} of {where}; features must "
            "be finite numbers"
        )
    return table


def _values(files: Sequence[Path], column: str, where: str) -> NDArray[Any]:
    """A column of labels or client ids: whole numbers, floats or strings."""
    import pyarrow as pa

    values = _column(files, column, where)
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    kind = values.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return np.array(values.to_pylist(), dtype=np.str_)
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind):
        return np.asarray(values.to_numpy(zero_copy_only=False)).astype(np.int64)
    if pa.types.is_floating(kind):
        return np.asarray(values.to_numpy(zero_copy_only=False)).astype(np.float64)
    raise InputError(f"column {column!r} of {where} holds {kind}; it must be numbers or strings")


def histogram(images: NDArray[np.uint8]) -> NDArray[np.int64]:
    """How often each channel has each value [channels, 256]: mean and std, exactly, from counts."""
    counts = np.zeros((images.shape[1], 256), dtype=np.int64)
    for start in range(0, len(images), _BATCH):  # bincount widens its input eightfold
        for c in range(images.shape[1]):
            counts[c] += np.bincount(images[start : start + _BATCH, c].ravel(), minlength=256)
    return counts
