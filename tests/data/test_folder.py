"""Which files make up a split, in the layouts that the Hub uses."""

from pathlib import Path

import pytest

from turnout.data.folder import split_files
from turnout.errors import InputError


def touch(folder: Path, *names: str) -> Path:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()
    return folder


def found(folder: Path, split: str, config: str | None = None) -> list[str]:
    return [path.relative_to(folder).as_posix() for path in split_files(folder, split, config)]


@pytest.mark.parametrize(
    "names",
    [
        ["train.parquet"],
        ["data/train-00000-of-00001.parquet"],
        ["plain_text/train-00000-of-00001.parquet"],
        ["train-00000-of-00002.parquet", "train-00001-of-00002.parquet"],
        ["data/train-00000-of-00002-b5f3.parquet", "data/train-00001-of-00002-0c1d.parquet"],
        ["default/train/0000.parquet", "default/train/0001.parquet"],
    ],
)
def test_layouts(tmp_path, names) -> None:
    others = ["test.parquet", "data/test-00000-of-00001.parquet", "data/trainer.parquet"]
    touch(tmp_path, *names, *others, "notes.txt")
    assert found(tmp_path, "train") == names


def test_shards_come_in_order(tmp_path) -> None:
    names = [f"data/train-{k:05}-of-00012.parquet" for k in range(12)]
    touch(tmp_path, *reversed(names))
    assert found(tmp_path, "train") == names


def test_configurations(tmp_path) -> None:
    touch(tmp_path, "digits/train.parquet", "numbers/train.parquet", "digits/extra.parquet")
    assert found(tmp_path, "train", "numbers") == ["numbers/train.parquet"]
    for config in (None, "letters"):
        with pytest.raises(InputError, match="must be one of digits, numbers"):
            split_files(tmp_path, "train", config)


def test_a_copy_without_the_name_of_its_configuration(tmp_path) -> None:
    touch(tmp_path, "train.parquet")
    assert found(tmp_path, "train", "cropped_digits") == ["train.parquet"]


def test_missing_splits_and_shards(tmp_path) -> None:
    touch(tmp_path, "train.parquet", "data/test-00000-of-00003.parquet")
    touch(tmp_path, "data/test-00002-of-00003.parquet")
    with pytest.raises(
        InputError, match=r"no file of split 'dev'; it holds test, train.*dev\.parq"
    ):
        split_files(tmp_path, "dev")
    with pytest.raises(InputError, match="2 files of split 'test'; there must be the 3"):
        split_files(tmp_path, "test")
    with pytest.raises(InputError, match="it holds no Parquet files"):
        split_files(tmp_path / "elsewhere", "train")
