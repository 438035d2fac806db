"""Data sets from folders: every kind of column, every mistake."""

import os
import time

import numpy as np
import pyarrow as pa
import pytest
import torch
from tests.data.files import image_column, image_set, pixels, write

from turnout.data import DATASETS, load, natural
from turnout.data.cache import cache_folder
from turnout.errors import InputError


def table_set(folder, rows: int = 10, **replaced):
    """Features a (floats) and b (whole numbers), labels "no" and "yes", clients "u0" … "u3"."""
    rng = np.random.default_rng(0)
    columns = {
        "a": rng.normal(size=rows),
        "b": np.arange(rows),
        "label": ["no" if row % 2 else "yes" for row in range(rows)],
        "who": [f"u{row % 4}" for row in range(rows)],
    }
    for split in ("train", "test"):
        write(folder / f"{split}.parquet", **{**columns, **replaced})
    return folder


TABLE = {"features": ["a", "b"]}


def test_digits_are_embedded() -> None:
    train, test = load("digits")
    assert (len(train), len(test), train.classes) == (1438, 359, 10)
    assert "digits" in DATASETS
    assert all(DATASETS.values())


def test_images_from_the_data_folder(tmp_path, monkeypatch) -> None:
    image_set(tmp_path / "data" / "mine")
    monkeypatch.setenv("TURNOUT_DATA", str(tmp_path / "data"))
    train, test = load("mine", image="image")
    assert torch.equal(train.inputs, torch.from_numpy(pixels(6, seed=0))[:, None])
    assert torch.equal(test.inputs, torch.from_numpy(pixels(6, seed=1))[:, None])
    assert train.targets.tolist() == [0, 1, 2, 0, 1, 2]
    assert train.classes == 3
    # Mean and std are measured on the training images, for both.
    raw = pixels(6, seed=0) / 255
    assert train.mean.item() == pytest.approx(raw.mean(), rel=1e-5)
    assert test.std.item() == pytest.approx(raw.std(), rel=1e-5)


def test_the_ways_to_say_where(tmp_path, monkeypatch) -> None:
    image_set(tmp_path / "sets" / "mine")
    image_set(tmp_path / "sets" / "fashion_mnist")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TURNOUT_DATA", raising=False)
    for name, folder in (
        ("mine", "sets"),
        ("mine", tmp_path / "sets"),
        (str(tmp_path / "sets" / "mine"), None),
        ("./sets/mine", None),
        ("sets/mine", None),
        ("owner/mine", "sets"),
    ):
        assert len(load(name, folder, image="image")[0]) == 6
    # A known set needs no columns, and is found under any of its names.
    for name in ("fashion_mnist", "zalando-datasets/fashion_mnist"):
        train, _ = load(name, "sets")
        assert train.classes == 10
        assert train.mean.item() == pytest.approx(0.2860)


def test_features(tmp_path) -> None:
    train, _ = load(str(table_set(tmp_path)), **TABLE)
    assert train.inputs.dtype == torch.float32
    assert train.inputs.shape == (10, 2)
    assert train.inputs[:, 1].tolist() == list(range(10))
    assert train.targets.tolist() == [1, 0] * 5
    assert train.mean is None
    assert train.owners is None


def test_lists_of_numbers_are_features_too(tmp_path) -> None:
    vectors = [[float(row), 1.0, 2.0] for row in range(10)]
    train, _ = load(str(table_set(tmp_path, a=vectors)), **TABLE)
    assert train.inputs.shape == (10, 4)
    assert train.inputs[3].tolist() == [3.0, 1.0, 2.0, 3.0]


def test_the_natural_partition_by_a_client_column(tmp_path) -> None:
    train, _ = load(str(table_set(tmp_path)), **TABLE, client="who")
    partition = natural(train.owners)
    assert partition.clients == 4
    assert partition.rows(1).tolist() == [1, 5, 9]


def test_held_out_test_set(tmp_path) -> None:
    folder = table_set(tmp_path)
    (folder / "test.parquet").unlink()
    train, test = load(str(folder), **TABLE, client="who", test="", holdout=0.3)
    together = sorted([*train.inputs[:, 1].tolist(), *test.inputs[:, 1].tolist()])
    assert together == list(range(10))
    assert len(test) == 3
    assert test.owners.tolist() == [f"u{int(b) % 4}" for b in test.inputs[:, 1]]
    again = load(str(folder), **TABLE, test=None, holdout=0.3)[1]
    assert torch.equal(again.inputs, test.inputs)


def test_a_held_out_image_set(tmp_path) -> None:
    train, test = load(str(image_set(tmp_path)), image="image", test="", holdout=0.5)
    assert (len(train), len(test)) == (3, 3)
    assert train.inputs.shape[1:] == (1, 5, 4)
    # What was held out has no part in the normalisation.
    assert train.mean.item() == pytest.approx((train.inputs / 255).mean().item(), rel=1e-5)


def test_regression(tmp_path) -> None:
    train, _ = load(str(table_set(tmp_path)), features="b", label="a", regression=True)
    assert train.classes is None
    assert train.targets.dtype == torch.float32
    assert train.inputs.shape == (10, 1)


def test_shards_are_read_in_order(tmp_path) -> None:
    for k in range(3):
        for split in ("train", "test"):
            write(
                tmp_path / "data" / f"{split}-{k:05}-of-00003.parquet",
                image=image_column(pixels(2, seed=k)),
                label=[k, (k + 1) % 3],
            )
    train, _ = load(str(tmp_path), image="image")
    assert train.targets.tolist() == [0, 1, 1, 2, 2, 0]
    assert torch.equal(train.inputs[4:, 0], torch.from_numpy(pixels(2, seed=2)))


def test_plain_bytes_and_dictionary_labels(tmp_path) -> None:
    image = [file["bytes"] for file in image_column(pixels(4))]
    label = pa.array(["x", "y", "x", "y"]).dictionary_encode()
    for split in ("train", "test"):
        write(tmp_path / f"{split}.parquet", image=image, label=label)
    train, _ = load(str(tmp_path), image="image")
    assert torch.equal(train.inputs[:, 0], torch.from_numpy(pixels(4)))
    assert train.targets.tolist() == [0, 1, 0, 1]


def test_the_second_start_decodes_nothing_and_a_changed_file_is_noticed(
    tmp_path, monkeypatch
) -> None:
    folder = image_set(tmp_path / "mine")
    first = load(str(folder), image="image")[0]
    with monkeypatch.context() as patch:
        patch.setattr("turnout.data.parquet.decode", None)  # calling it would fail
        assert torch.equal(load(str(folder), image="image")[0].inputs, first.inputs)
    entries = len(list(cache_folder().iterdir()))
    write(
        folder / "train.parquet",
        image=image_column(pixels(6, seed=7)),
        label=[row % 3 for row in range(6)],
    )
    os.utime(folder / "train.parquet", (0, time.time() + 5))
    changed = load(str(folder), image="image")[0]
    assert torch.equal(changed.inputs[:, 0], torch.from_numpy(pixels(6, seed=7)))
    assert len(list(cache_folder().iterdir())) == entries + 1


def test_other_columns_of_the_same_file_are_not_mixed_up(tmp_path) -> None:
    folder = str(table_set(tmp_path))
    assert load(folder, features=["a"])[0].inputs.shape == (10, 1)
    assert load(folder, features=["b"])[0].inputs[:, 0].tolist() == list(range(10))
    assert load(folder, features=["b"])[0].owners is None
    assert load(folder, features=["b"], client="who")[0].owners[1] == "u1"


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"image": "picture"}, "column 'picture' is not in .*; the columns there are a, b, label"),
        ({"features": ["a", "c"]}, "column 'c' is not in"),
        ({**TABLE, "label": "class"}, "column 'class' is not in"),
        ({**TABLE, "client": "whom"}, "column 'whom' is not in"),
        ({}, "neither `image` nor `features`.* among a, b, label, who"),
        ({**TABLE, "image": "a"}, "give one of the two"),
        ({"image": "a"}, "column 'a' .* holds double; images must be"),
        ({"features": ["who"]}, "column 'who' .* holds string; features must be numbers"),
        ({**TABLE, "feature": ["a"]}, "field of data set .*did you mean 'features'"),
        ({**TABLE, "test": "dev"}, "no file of split 'dev'; it holds test, train"),
        ({**TABLE, "test": "", "holdout": 0.0}, "holdout is 0.0"),
        ({**TABLE, "test": "", "holdout": 0.01}, "holdout is 0.01"),
        ({**TABLE, "classes": 1}, "classes is 1"),
    ],
)
def test_mistakes_in_the_fields(tmp_path, fields, message) -> None:
    with pytest.raises(InputError, match=message):
        load(str(table_set(tmp_path)), **fields)


@pytest.mark.parametrize(
    ("replaced", "message"),
    [
        ({"a": [0.0] * 9 + [float("nan")]}, "column 'a' has NaN or an infinite value in row 9"),
        ({"a": [0.0] * 9 + [float("inf")]}, "column 'a' has NaN or an infinite value in row 9"),
        ({"a": [0.0, None] * 5}, "column 'a' has no value in row 1"),
        ({"a": [[0.0], [0.0, 1.0]] * 5}, "lists of 1 to 2 numbers"),
        ({"a": [[0.0], [None]] * 5}, "lists with missing values"),
        ({"label": ["x", None] * 5}, "column 'label' has no value in row 1"),
        ({"label": [[1], [2]] * 5}, "column 'label' of .* holds list"),
        ({"label": [0.5, 1.0] * 5}, "column 'label' holds 0.5"),
        ({"label": ["same"] * 10}, "classes is 1"),
        ({"who": ["u", None] * 5}, "column 'who' has no value in row 1"),
    ],
)
def test_mistakes_in_the_data(tmp_path, replaced, message) -> None:
    with pytest.raises(InputError, match=message):
        load(str(table_set(tmp_path, **replaced)), **TABLE, client="who")


def test_empty_and_foreign_files(tmp_path) -> None:
    folder = table_set(tmp_path)
    write(folder / "test.parquet", a=[0.0][:0], b=[0][:0], label=["x"][:0], who=["x"][:0])
    with pytest.raises(InputError, match=r"test\.parquet has no rows"):
        load(str(folder), **TABLE)
    (folder / "test.parquet").write_text("not Parquet")
    with pytest.raises(InputError, match=r"cannot be read .*; it must be Parquet"):
        load(str(folder), **TABLE)


def test_splits_must_agree_in_shape(tmp_path) -> None:
    folder = image_set(tmp_path)
    write(folder / "test.parquet", image=image_column(pixels(3, (9, 9))), label=[0, 1, 2])
    with pytest.raises(InputError, match=r"shape of test inputs is \(1, 9, 9\)"):
        load(str(folder), image="image")


def test_moments_must_fit_the_channels(tmp_path) -> None:
    folder = str(image_set(tmp_path))
    with pytest.raises(InputError, match="one number for each of 1 channels"):
        load(folder, image="image", mean=[0.1, 0.2, 0.3])
    with pytest.raises(InputError, match="above 0 for every channel"):
        load(folder, image="image", std=[0.0])
    assert load(folder, image="image", mean=0.5)[0].mean.item() == 0.5


def test_names_and_folders_that_do_not_exist(tmp_path, monkeypatch) -> None:
    image_set(tmp_path / "sets" / "mine")
    with pytest.raises(InputError, match="'mnits' is not known; did you mean 'mnist'"):
        load("mnits")
    with pytest.raises(InputError, match="has no data set 'yours'; it holds mine"):
        load("yours", tmp_path / "sets")
    monkeypatch.setenv("TURNOUT_DATA", str(tmp_path / "sets"))
    with pytest.raises(InputError, match="did you mean 'mine'"):
        load("mime")
    monkeypatch.setenv("TURNOUT_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(InputError, match=r"TURNOUT_DATA is .*nowhere'; it must be a folder"):
        load("mnist")
    with pytest.raises(InputError, match="none: it is embedded"):
        load("digits", label="x")
