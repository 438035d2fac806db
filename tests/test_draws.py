"""Draws: the streams are pinned, apart from each other, and nobody's global state."""

import subprocess
import sys
from itertools import product

import numpy as np
import torch

from turnout.draws import generator
from turnout.engine import batches


def raw(*at, **more) -> list[int]:
    return generator(*at, **more).bit_generator.random_raw(2).tolist()


def test_streams_are_pinned() -> None:
    """Old runs stay reproducible: a change here is a change of every result ever noted."""
    assert raw(0, "x") == [13429425947406657179, 1789184633980429119]
    assert generator(0, "batches", 3, 7).integers(1000, size=5).tolist() == [316, 319, 162, 869, 33]
    np.testing.assert_array_equal(
        generator(1, "assistance", round=12).random(2), [0.38371947912924553, 0.21882113300647044]
    )


def test_batches_are_pinned() -> None:
    drawn = batches.draw([(10, 17)], np.array([3]), 4, seed=2, round=5, clients=[3])
    assert drawn.index.tolist() == [[[15, 11, 14, 12], [13, 16, 10, 13], [16, 10, 15, 13]]]
    assert drawn.keys.tolist() == [[8769008994814799930, 4481880038625858225, 8238735846718726415]]


def test_the_same_place_gives_the_same_stream_and_any_other_another() -> None:
    places = list(product([0, 1, 2**32], ["batches", "augment"], [0, 1, 2**33], [0, 1, 10**7]))
    streams = {tuple(raw(*place)) for place in places}
    assert len(streams) == len(places)
    assert [raw(*place) for place in places] == [raw(*place) for place in places]


def test_round_and_client_do_not_run_into_each_other() -> None:
    """A long stream of one client does not reach the next one's."""
    long = generator(0, "x", 0, 0).bit_generator.random_raw(40_000)
    assert not np.isin(generator(0, "x", 0, 1).bit_generator.random_raw(1000), long).any()
    assert not np.isin(generator(0, "x", 1, 0).bit_generator.random_raw(1000), long).any()


def test_streams_of_neighbours_are_unrelated() -> None:
    values = np.array([generator(0, "x", t, n).random(200) for t in range(6) for n in range(6)])
    correlations = np.corrcoef(values)[np.triu_indices(len(values), 1)]
    assert np.abs(correlations).max() < 0.3  # 630 pairs: four standard deviations are 0.28
    assert abs(values.mean() - 0.5) < 0.015


def test_no_global_generator_is_read_or_moved() -> None:
    np.random.seed(0)  # noqa: NPY002
    torch.manual_seed(0)
    before = np.random.get_state()[1].tolist(), torch.get_rng_state().tolist()  # noqa: NPY002
    first = raw(0, "x")
    batches.draw([(0, 9)], np.array([3]), 4, seed=2, round=5, clients=[3])
    after = np.random.get_state()[1].tolist(), torch.get_rng_state().tolist()  # noqa: NPY002
    assert before == after
    np.random.seed(1)  # noqa: NPY002
    assert raw(0, "x") == first


def test_another_process_draws_the_same() -> None:
    """Python salts string hashes anew in every process; purposes must not depend on that."""
    code = "from turnout.draws import generator; print(generator(3, 'a purpose', 2, 1).random())"
    out = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout
    assert float(out) == generator(3, "a purpose", 2, 1).random()


def test_large_and_negative_seeds_are_seeds() -> None:
    assert raw(-1, "x") == raw(2**64 - 1, "x") != raw(1, "x")
