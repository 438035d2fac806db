"""PNG and JPEG images to one uint8 array."""

import os
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from io import BytesIO

import numpy as np
from numpy.typing import NDArray

from turnout.errors import InputError

Pixels = NDArray[np.uint8]

_GREY = ("L", "1", "LA")
_COLOUR = ("RGB", "RGBA", "RGBX", "P", "PA", "CMYK", "YCbCr", "HSV", "LAB")


def decode(batches: Iterable[list[bytes | None]], where: str) -> Pixels:
    """All images [n, 1, H, W] if all are grey, [n, 3, H, W] otherwise; `where` is for errors."""

    def decode_from(item: tuple[int, list[bytes | None]]) -> Pixels:
        return _decode_batch(item[0], item[1], where)

    # Threads do, because Pillow decodes without holding the interpreter's lock.
    with ThreadPoolExecutor(os.cpu_count()) as threads:
        blocks = list(threads.map(decode_from, _number(batches)))
    channels = max(block.shape[1] for block in blocks)
    shapes = {block.shape[2:] for block in blocks}
    if len(shapes) > 1:
        raise _sizes_differ(where, shapes)
    # A grey image among coloured ones is one with three equal channels.
    return np.concatenate([np.broadcast_to(b, (len(b), channels, *b.shape[2:])) for b in blocks])


def _number(batches: Iterable[list[bytes | None]]) -> Iterable[tuple[int, list[bytes | None]]]:
    start = 0
    for batch in batches:
        if batch:
            yield start, batch
        start += len(batch)


def _decode_batch(start: int, batch: list[bytes | None], where: str) -> Pixels:
    images = [_decode_one(data, f"row {start + k} of {where}") for k, data in enumerate(batch)]
    shapes = {image.shape[:2] for image in images}
    if len(shapes) > 1:
        raise _sizes_differ(where, shapes)
    colour = any(image.ndim == 3 for image in images)
    out = np.empty((len(images), 3 if colour else 1, *images[0].shape[:2]), dtype=np.uint8)
    for row, image in zip(out, images, strict=True):
        row[:] = image if image.ndim == 2 else image.transpose(2, 0, 1)
    return out


def _decode_one(data: bytes | None, where: str) -> Pixels:
    from PIL import Image

    if not data:
        raise InputError(f"image in {where} has no bytes; it must hold a PNG or JPEG file")
    try:
        with Image.open(BytesIO(data)) as image:
            if image.mode in _GREY:
                return np.asarray(image if image.mode == "L" else image.convert("L"))
            if image.mode in _COLOUR:
                return np.asarray(image if image.mode == "RGB" else image.convert("RGB"))
            mode = image.mode
    except (OSError, ValueError, SyntaxError) as error:  # Pillow raises all three for bad files
        raise InputError(
            f"image in {where} cannot be decoded ({error}); it must be a PNG or JPEG file"
        ) from None
    # 16-bit and floating images have no range that is known to fit eight bits.
    raise InputError(f"image in {where} is of mode {mode}; it must have 8 bits a channel")


def _sizes_differ(where: str, shapes: Iterable[tuple[int, ...]]) -> InputError:
    found = ", ".join(f"{height} × {width}" for height, width in sorted(shapes)[:4])
    return InputError(f"images of {where} have sizes {found}; all must have the same size")
