"""A given mask."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given as drawn
from hypothesis.extra.numpy import array_shapes, arrays

from turnout.errors import InputError
from turnout.participation import Log, given

masks = arrays(bool, array_shapes(min_dims=2, max_dims=2, max_side=12))


@drawn(masks)
def test_it_gives_what_it_was_given(mask: np.ndarray) -> None:
    process = given(mask)
    assert np.array_equal(process.mask(len(mask)), mask)
    assert process.rates == pytest.approx(mask.mean(axis=0))
    assert np.array_equal(given(mask.astype(float)).mask(len(mask)), mask)


@drawn(masks)
def test_it_repeats_when_asked(mask: np.ndarray) -> None:
    again = given(mask, repeat=True).mask(3 * len(mask))
    assert np.array_equal(again, np.tile(mask, (3, 1)))


def test_a_round_beyond_the_mask_is_refused() -> None:
    with pytest.raises(InputError, match=r"round 2 \(the first is 0\) lies beyond .* 2 rounds"):
        given([[1, 0], [0, 1]]).mask(3)


def test_more_rounds_and_clients_than_show_up() -> None:
    process = given([[0, 1]], rounds=3, clients=4)
    assert process.mask(3).sum() == 1
    assert process.clients == 4
    assert process.rates == pytest.approx([0, 1 / 3, 0, 0])


def test_a_log_keeps_who_was_asked_in_vain() -> None:
    log = Log(2, 3, np.array([0, 0, 1]), np.array([0, 2, 1]), np.array([True, False, False]))
    process = given(log)
    assert process.mask(2, cohort=True).astype(int).tolist() == [[1, 0, 1], [0, 1, 0]]
    assert process.mask(2).astype(int).tolist() == [[1, 0, 0], [0, 0, 0]]
    assert process.rates.tolist() == [0.5, 0, 0]


def test_from_files(tmp_path: Path) -> None:
    np.save(tmp_path / "mask.npy", np.eye(3, dtype=np.uint8))
    assert given(tmp_path / "mask.npy").mask(3).tolist() == np.eye(3, dtype=bool).tolist()
    (tmp_path / "log.csv").write_text("client,round\n1,0\n0,2\n")
    process = given(str(tmp_path / "log.csv"), repeat=True, clients=3)
    assert process.mask(4).astype(int).tolist() == [[0, 1, 0], [0, 0, 0], [1, 0, 0], [0, 1, 0]]


@pytest.mark.parametrize(
    ("mask", "message"),
    [
        ([[0, 2]], "mask of round 0, client 1 is 2; it must be 0 or 1"),
        ([[0.0], [np.nan]], "mask of round 1, client 0 is nan; it must be 0 or 1"),
        ([0, 1], "shape of the mask is (2,); it must be [rounds, clients] with at least 1 of each"),
        (np.zeros((0, 3)), "shape of the mask is (0, 3); it must be [rounds, clients] with"),
        ([[0, 1], [1]], "mask is [[0, 1], [1]]; it must be a [rounds, clients] table of 0 and 1"),
        ([["x"]], "mask is [['x']]; it must be a [rounds, clients] table of 0 and 1"),
    ],
)
def test_bad_masks(mask: object, message: str) -> None:
    with pytest.raises(InputError) as error:
        given(mask)
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ({"rounds": 1}, "rounds is 1; it must be a whole number of at least 2"),
        ({"clients": 1}, "clients is 1; it must be a whole number of at least 2"),
    ],
)
def test_no_fewer_than_there_are(sizes: dict[str, int], message: str) -> None:
    with pytest.raises(InputError) as error:
        given([[0, 1], [1, 0]], **sizes)
    assert message in str(error.value)
