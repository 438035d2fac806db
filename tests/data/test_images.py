"""Decoding, pixel for pixel."""

from io import BytesIO

import numpy as np
import pytest
from PIL import Image
from tests.data.files import encode, pixels

from turnout.data.images import decode
from turnout.errors import InputError


def test_grey_images_pixel_for_pixel_and_in_order() -> None:
    images = pixels(25)
    files = [encode(image) for image in images]
    out = decode([files[:10], [], files[10:11], files[11:]], "here")
    assert out.shape == (25, 1, 5, 4)
    assert out.dtype == np.uint8
    assert np.array_equal(out[:, 0], images)


def test_colour_images_are_channels_first() -> None:
    images = pixels(3, (4, 6, 3))
    out = decode([[encode(image) for image in images]], "here")
    assert np.array_equal(out, images.transpose(0, 3, 1, 2))


@pytest.mark.parametrize("together", [True, False])
def test_a_grey_image_among_coloured_ones_gets_three_equal_channels(together) -> None:
    grey, colour = pixels(1)[0], pixels(1, (5, 4, 3))[0]
    files = [encode(grey), encode(colour)]
    out = decode([files] if together else [files[:1], files[1:]], "here")
    assert out.shape == (2, 3, 5, 4)
    assert all(np.array_equal(out[0, c], grey) for c in range(3))
    assert np.array_equal(out[1], colour.transpose(2, 0, 1))


def test_jpeg_and_other_modes() -> None:
    smooth = np.full((8, 8, 3), (200, 100, 50), dtype=np.uint8)
    out = decode([[encode(smooth, "JPEG")]], "here")
    assert np.abs(out[0].astype(int) - smooth.transpose(2, 0, 1)).max() < 6
    buffer = BytesIO()
    Image.fromarray(smooth).convert("P").save(buffer, "PNG")
    assert decode([[buffer.getvalue()]], "here").shape == (1, 3, 8, 8)
    buffer = BytesIO()
    Image.fromarray(np.eye(4, dtype=bool)).save(buffer, "PNG")
    assert decode([[buffer.getvalue()]], "here")[0, 0, 0].tolist() == [255, 0, 0, 0]


def test_refusals() -> None:
    good = encode(pixels(1)[0])
    with pytest.raises(InputError, match="row 3 of here cannot be decoded"):
        decode([[good, good], [good, b"nonsense"]], "here")
    with pytest.raises(InputError, match="row 1 of here cannot be decoded"):
        decode([[good, good[:-25]]], "here")
    with pytest.raises(InputError, match="row 0 of here has no bytes"):
        decode([[None]], "here")
    other = encode(pixels(1, (7, 4))[0])
    for batches in ([[good, other]], [[good], [other]]):
        with pytest.raises(InputError, match="sizes 5 × 4, 7 × 4; all must have the same"):
            decode(batches, "here")
    deep = encode(np.full((2, 2), 40_000, dtype=np.uint16))
    with pytest.raises(InputError, match="8 bits a channel"):
        decode([[deep]], "here")
