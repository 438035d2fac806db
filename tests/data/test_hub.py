"""Fetching by name, with a stand-in for the Hub's client."""

import sys
from fnmatch import fnmatch
from pathlib import Path

import pytest
from tests.data.files import image_set

from turnout.data import hub, load
from turnout.data.folder import split_files
from turnout.errors import InputError


class FakeHub:
    """Keeps what was asked of it; serves the revisions that it has, fetched or not."""

    def __init__(self, remote: dict[str, Path], cached: dict[str, Path] | None = None) -> None:
        self.remote, self.cached, self.asked = remote, cached or {}, []

    def __call__(self, repo_id, repo_type, revision, allow_patterns, local_files_only) -> str:
        self.asked.append((repo_id, repo_type, revision, local_files_only))
        self.patterns = allow_patterns
        found = (self.cached if local_files_only else self.remote).get(revision)
        if found is None:
            raise OSError(f"revision {revision} is not here\nand more lines")
        return str(found)


def test_a_set_that_was_fetched_before_needs_no_network(tmp_path) -> None:
    folder = image_set(tmp_path / "snapshot")
    fake = FakeHub({}, {"main": folder})
    assert hub.snapshot("owner/set", ["train", "test"], download=fake) == folder
    assert fake.asked == [("owner/set", "dataset", "main", True)]


def test_an_incomplete_snapshot_is_fetched_again(tmp_path) -> None:
    partial, whole = tmp_path / "partial", image_set(tmp_path / "whole")
    image_set(partial)
    (partial / "test.parquet").unlink()
    fake = FakeHub({"main": whole}, {"main": partial})
    assert hub.snapshot("owner/set", ["train", "test"], download=fake) == whole
    assert [local for *_, local in fake.asked] == [True, True, False]


def test_the_hubs_own_conversion_serves_repositories_without_parquet(tmp_path) -> None:
    (tmp_path / "main").mkdir()
    converted = tmp_path / "converted"
    image_set(tmp_path / "plain")
    for split in ("train", "test"):
        (converted / "default" / split).mkdir(parents=True)
        (tmp_path / "plain" / f"{split}.parquet").rename(
            converted / "default" / split / "0000.parquet"
        )
    fake = FakeHub({"main": tmp_path / "main", "refs/convert/parquet": converted})
    assert hub.snapshot("owner/set", ["train", "test"], download=fake) == converted
    assert [path.name for path in split_files(converted, "test")] == ["0000.parquet"]


@pytest.mark.parametrize(
    ("config", "path", "wanted"),
    [
        (None, "data/train-00000-of-00001.parquet", True),
        (None, "train.parquet", True),
        (None, "mnist/test/0000.parquet", True),
        (None, "README.md", False),
        (None, "data/validation-00000-of-00001.parquet", False),
        ("cropped_digits", "cropped_digits/train-00000-of-00001.parquet", True),
        ("cropped_digits", "full_numbers/train-00000-of-00002.parquet", False),
        ("cropped_digits", "cropped_digits/extra-00000-of-00002.parquet", False),
    ],
)
def test_only_the_files_that_are_needed_are_fetched(tmp_path, config, path, wanted) -> None:
    # The client matches its patterns just so.
    fake = FakeHub({"main": image_set(tmp_path)})
    hub.snapshot("owner/set", ["train", "test"], config, fake)
    assert any(fnmatch(path, pattern) for pattern in fake.patterns) == wanted


def test_a_failure_is_one_sentence_with_the_hubs_reason() -> None:
    with pytest.raises(InputError) as caught:
        hub.snapshot("owner/set", ["train"], download=FakeHub({}))
    assert "'owner/set' could not be fetched from the Hub (revision main" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_without_the_extra_the_message_says_what_to_install_or_set(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(InputError) as caught:
        load("mnist")
    assert "pip install turnout[hub]" in str(caught.value)
    assert "TURNOUT_DATA to a folder that holds mnist/train.parquet" in str(caught.value)


def test_known_and_other_repositories_load_through_the_hub(tmp_path, monkeypatch) -> None:
    folder = image_set(tmp_path / "snapshot")
    fake = FakeHub({"main": folder})
    monkeypatch.setattr(hub, "_client", lambda repository: fake)
    for name in ("mnist", "ylecun/mnist"):
        train, test = load(name)
        assert fake.asked[-1] == ("ylecun/mnist", "dataset", "main", False)
        assert train.classes == 10
        assert (len(train), len(test)) == (6, 6)
    assert load("some/set", image="image")[0].classes == 3
    assert fake.asked[-1][0] == "some/set"
