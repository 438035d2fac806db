"""Checkpoints with bytes changed, and ones that a stranger made up: read as they were, or refused."""

import copy
import json
import os
import pickle
import shutil
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import currently_in_test_context, event
from hypothesis import strategies as some
from tests.conformance.cases import CASES, classification, logistic
from tests.fuzz.bend import binary, few_or_a_thousand, in_time, tried

from turnout import checkpoint
from turnout.errors import CheckpointError, InputError
from turnout.simulator import Simulation, advance, begin, restore

STATES = {
    round: {
        "x": torch.arange(6.0) + round,
        "table": torch.arange(32.0).reshape(8, 4) * round,
        "count": round,
        "seen": np.arange(8) < round,
    }
    for round in (1, 2)
}


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two checkpoints with tables in blocks."""
    folder = tmp_path_factory.mktemp("original")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(checkpoint, "BLOCK_BYTES", 64)
        for round, state in STATES.items():
            counts = np.full(8, round)
            checkpoint.save(folder, round, state, {"a": round}, counts, ["state.table"])
    return folder


def read(folder: Path) -> checkpoint.Checkpoint | None:
    """What is there, or None if that is refused; the files are left as they are."""
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    said: list[str] = []
    found = None
    with in_time():
        try:
            found = checkpoint.load(folder, said.append)
        except CheckpointError as error:
            said.append(str(error))
    assert all(sentence and "\n" not in sentence for sentence in said)
    assert before == {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    if currently_in_test_context():
        event("read" if found is not None else "refused in a sentence")
    return found


@few_or_a_thousand
def test_what_is_read_is_what_was_written(inputs: int, original: Path) -> None:
    """Bytes of any files changed, files gone or exchanged: a state that was, or none."""
    names = sorted(str(path.relative_to(original)) for path in original.rglob("*.*"))
    assert len(names) == 8
    rounds = []

    @tried(inputs, data=some.data())
    def check(data: Any) -> None:
        with tempfile.TemporaryDirectory() as place:
            folder = Path(place) / "copy"
            shutil.copytree(original, folder)
            for _ in range(data.draw(some.integers(1, 3))):
                name = data.draw(some.sampled_from(names))
                victim = folder / name
                match data.draw(some.sampled_from(["bend", "bend", "remove", "exchange"])):
                    case "bend" if victim.exists():
                        victim.write_bytes(data.draw(binary(victim.read_bytes())))
                    case "remove":
                        victim.unlink(missing_ok=True)
                    case "exchange":
                        shutil.copy(original / data.draw(some.sampled_from(names)), victim)
            found = read(folder)
            rounds.append(None if found is None else found.round)
            if found is not None:
                expected = STATES[found.round]
                assert found.tree.keys() == expected.keys()
                assert torch.equal(found.tree["x"], expected["x"])
                assert torch.equal(found.tree["table"], expected["table"])
                assert found.tree["count"] == expected["count"]
                assert np.array_equal(found.tree["seen"], expected["seen"])
                assert found.notes == {"a": found.round}

    assert set(rounds) == {None, 1, 2}


# A stranger can compute checksums, too ------------------------------------------------------------

SCALARS = some.none() | some.booleans() | some.integers() | some.floats() | some.text(max_size=8)
SCALARS |= some.sampled_from(["state.x", "../../etc/passwd", "tensor", "array", "dict", "value"])
NODES = some.recursive(
    SCALARS,
    lambda inside: (
        some.lists(inside, max_size=3)
        | some.dictionaries(some.sampled_from(["tensor", "dict", "value", "a"]), inside, max_size=2)
    ),
    max_leaves=5,
)


@some.composite
def forged(draw: some.DrawFn, body: Any) -> Any:
    """JSON with some of its nodes replaced or dropped."""
    changed = copy.deepcopy(body)
    for _ in range(draw(some.integers(1, 3))):
        inside, place = changed, None
        for _ in range(draw(some.integers(1, 5))):
            if isinstance(inside, dict) and inside:
                key: Any = draw(some.sampled_from(sorted(inside)))
            elif isinstance(inside, list) and inside:
                key = draw(some.integers(0, len(inside) - 1))
            else:
                break
            place, inside = (inside, key), inside[key]
        if place is not None:
            holder, key = place
            if draw(some.booleans()):
                holder[key] = draw(NODES)
            else:
                del holder[key]
    return changed


@pytest.fixture(scope="module")
def simulation() -> Simulation:
    return Simulation.of(CASES["scaffold"], classification(), logistic())


@few_or_a_thousand
def test_a_strangers_checkpoint_is_read_or_refused(
    inputs: int, simulation: Simulation, tmp_path: Path
) -> None:
    progress = begin(simulation)
    advance(simulation, progress)
    whole = checkpoint.save(tmp_path, 1, progress, {"a": 1}, progress.delivered)
    manifest = whole / checkpoint.MANIFEST
    body = json.loads(manifest.read_text())["body"]
    taken = []

    @tried(inputs, fake=some.just(body) | forged(body))
    def check(fake: Any) -> None:
        manifest.write_text(json.dumps({"checksum": checkpoint._seal(fake), "body": fake}))
        found = read(tmp_path)
        if found is None:
            return
        said = ""
        try:
            restore(simulation, found.tree)
        except InputError as error:
            said = str(error)
        taken.append(not said)
        assert "\n" not in said

    assert True in taken


def test_pickle_in_place_of_numbers_executes_nothing(tmp_path: Path) -> None:
    class Evil:
        def __reduce__(self) -> tuple[Any, ...]:
            return os.mkdir, (str(tmp_path / "executed"),)

    whole = checkpoint.save(tmp_path, 1, STATES[1])
    content = pickle.dumps(Evil())
    (whole / "state.safetensors").write_bytes(content)
    manifest = whole / checkpoint.MANIFEST
    body = json.loads(manifest.read_text())["body"]
    body["files"]["state.safetensors"] = {
        "bytes": len(content),
        "checksum": checkpoint._digest(content),
    }
    manifest.write_text(json.dumps({"checksum": checkpoint._seal(body), "body": body}))
    assert read(tmp_path) is None
    assert not (tmp_path / "executed").exists()
