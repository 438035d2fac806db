"""Experiment files: what they may say, and what is said about those that are wrong."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.experiments.worlds import SMALL, small

from turnout.errors import InputError
from turnout.experiments.read import change, configure, parse, read
from turnout.experiments.toml import dumps

WRONG = {
    "run.rounds=0": "run.rounds is 0; it must be a whole number of at least 1",
    'run.rounds="5"': "run.rounds is '5'; it must be a whole number of at least 1",
    "run.rounds=true": "run.rounds is True; it must be a whole number of at least 1",
    "run.round=4": "run.round is not a key of the configuration; did you mean 'rounds'?",
    "run.seeds=[]": "run.seeds is []; it must be one or more whole numbers from 0 to",
    "run.seeds=[1, 1]": "run.seeds is [1, 1]; it must be",
    "run.dtype=half": "run.dtype is 'half'; it must be one of 'float32', 'float64'",
    "run.clients_every=0": 'clients_every is 0; it must be a whole number of at least 1 or "none"',
    "data.auxiliary.sise=3": "data.auxiliary.sise is not a key of the configuration; did you mean",
    "data.shares=foo": "data.shares is 'foo'; it must be one of 'equal', 'samples' or a list of",
    "participation.lost=2": "participation.lost is 2; it must be a number from 0 to 1 or a list",
    "participation.rates.alpha=0": "participation.rates.alpha is 0; it must be a number above 0",
    "local.momentum=1": "local.momentum is 1; it must be a number of at least 0 and below 1",
    "local.schedule.after=3": "local.schedule has both or neither of halve_every and factors",
    "algorithm.0.label=4": 'algorithm.0.label is 4; it must be text in quotes or "none"',
    "algorithm.0.inner=3": "algorithm.0.inner is 3; it must be",
    "rounds=3": "rounds is not a key of the configuration",
    "modle.name=cnn": "modle is not a key of the configuration; did you mean 'model'?",
}


@pytest.mark.parametrize(("text", "sentence"), WRONG.items())
def test_one_sentence_says_what_is_wrong_where(text: str, sentence: str) -> None:
    with pytest.raises(InputError) as caught:
        small(text)
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "run is missing; it must be a table"),
        ("[run]\nrounds = 1\n", "algorithm is missing; it must be one or more tables"),
        ("[run]\n[[algorithm]]\nname = 'fedau'", "run.rounds is missing; it must be a whole"),
        ("[run]\nrounds = 1\n[[algorithm]]\ncutoff = 1", "algorithm.0.name is missing; it must"),
        ("[run]\nrounds = 1\nalgorithm = 3", "run.algorithm is not a key"),
    ],
)
def test_missing_parts_are_named(text: str, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        configure(parse(text))


def test_a_syntax_error_names_file_and_line(tmp_path: Path) -> None:
    path = tmp_path / "broken.toml"
    path.write_text("[run]\nrounds = = 3\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"broken.toml is not TOML: .* line 2"):
        read(path)


@pytest.mark.parametrize("content", [b"\xff\xfe", b"\x00"])
def test_a_file_that_is_no_text_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "binary.toml"
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"binary\.toml"):
        read(path)


def test_the_file_gives_the_run_its_name_and_its_folder_anchors_paths(tmp_path: Path) -> None:
    path = tmp_path / "tides.toml"
    path.write_text(SMALL + "\n[local]\nlr = 0.5\n", encoding="utf-8")
    config = read(path, ["participation.process=trace", "participation.path=elsewhere.csv"])
    assert config.run.name == "tides"
    assert config.local.lr == 0.5
    assert config.participation.options["path"] == "elsewhere.csv"  # from where one stands
    path.write_text(SMALL.replace("p = 0.5", 'path = "log.csv"'), encoding="utf-8")
    assert read(path).participation.options["path"] == str(tmp_path.resolve() / "log.csv")


def test_none_and_infinity_are_what_toml_cannot_or_can_say() -> None:
    config = small('local.batch_size="none"', "algorithm.fedau.cutoff=inf")
    assert config.local.batch_size is None
    assert config.algorithm[1].options == {"cutoff": float("inf")}


def test_set_reaches_algorithms_by_place_name_and_label() -> None:
    table = change(parse(SMALL), ["algorithm.0.label=plain", "algorithm.plain.lr=0.5"])
    table = change(table, ["algorithm.fedau.cutoff=7", 'algorithm.1.inner.name="mifa"'])
    assert table["algorithm"] == [
        {"name": "fedavg", "label": "plain", "lr": 0.5},
        {"name": "fedau", "cutoff": 7, "inner": {"name": "mifa"}},
    ]


@pytest.mark.parametrize(
    "text", ["run.rounds", ".=3", "=", "algorithm.9.lr=1", "run.rounds.deep=3"]
)
def test_set_refuses_what_it_cannot_place(text: str) -> None:
    with pytest.raises(InputError, match="--set"):
        change(parse(SMALL), [text])


keys = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), min_size=1, max_size=8)
values = st.recursive(
    st.booleans()
    | st.integers(-(2**62), 2**62)
    | st.floats(allow_nan=False)
    | st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), max_size=8),
    lambda inside: st.lists(inside, max_size=3) | st.dictionaries(keys, inside, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(keys, values, max_size=4))
def test_what_is_written_as_toml_reads_the_same(table: dict[str, object]) -> None:
    assert parse(dumps(table)) == table


@given(st.dictionaries(st.sampled_from(["run", "data", "local", "algorithm", "x"]), values))
def test_no_table_whatever_gets_past_as_anything_but_a_sentence(table: dict[str, object]) -> None:
    said = ""
    try:
        configure(table)
    except InputError as error:
        said = str(error)
    assert "\n" not in said
