"""Small data sets on disk, in the Hub's Parquet layout."""

from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image


def encode(pixels: np.ndarray, kind: str = "PNG") -> bytes:
    """One image [H, W] or [H, W, 3] as a file."""
    out = BytesIO()
    Image.fromarray(pixels).save(out, kind)
    return out.getvalue()


def write(path: Path, **columns: Any) -> Path:
    """A Parquet file of these columns."""
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), path)
    return path


def pixels(rows: int, size: tuple[int, ...] = (5, 4), seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (rows, *size), dtype=np.uint8)


def image_column(images: np.ndarray) -> list[dict[str, Any]]:
    return [{"bytes": encode(image), "path": None} for image in images]


def image_set(folder: Path, rows: int = 6, **more: Any) -> Path:
    """train.parquet and test.parquet of grey images with labels 0, 1, 2, 0, 1, 2, …"""
    for split, seed in (("train", 0), ("test", 1)):
        write(
            folder / f"{split}.parquet",
            image=image_column(pixels(rows, seed=seed)),
            label=[row % 3 for row in range(rows)],
            **more,
        )
    return folder
