"""Sizes that no machine holds are refused in a sentence, before anything is allocated."""

import pytest
from tests.experiments.worlds import small

from turnout import room
from turnout.data import least_squares
from turnout.errors import InputError
from turnout.experiments.cells import simulation_of
from turnout.experiments.config import Config
from turnout.experiments.plan import Cells
from turnout.models import Model


def test_memory_is_that_of_the_machine_or_of_its_container(
    monkeypatch: pytest.MonkeyPatch, tmp_path
) -> None:
    whole = room.memory()
    assert 10**8 < whole < 10**15
    limit = tmp_path / "memory.max"
    monkeypatch.setattr(room, "_LIMITS", (str(limit), str(tmp_path / "none")))
    for said, expected in (("1000000\n", 10**6), ("max\n", None), (f"{2**63}\n", None)):
        limit.write_text(said)
        assert room.memory() == (expected or max(whole, room.memory()))


def test_what_fits_and_what_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "memory", lambda: 800)
    room.require_room("dim", 100, "a point", 100)
    with pytest.raises(
        InputError, match=r"^dim is 101; it must be less, as a point would take 808 bytes"
    ):
        room.require_room("dim", 101, "a point", 101)


# The middle one is a number that torch and numpy take, and that Linux may well promise.
TOO_MUCH = [2**70, 2**63, 2**41]


@pytest.mark.parametrize("size", TOO_MUCH)
@pytest.mark.parametrize("before", [[], [8], [2**40]])
def test_models(size: int, before: list[int]) -> None:
    with pytest.raises(InputError, match=r"hidden is \[.*\]; it must be less"):
        Model.of("perceptron", (64,), 10, {"hidden": [*before, size]})


@pytest.mark.parametrize("size", TOO_MUCH)
@pytest.mark.parametrize("field", ["clients", "dim", "samples"])
def test_problems(size: int, field: str) -> None:
    sizes = {"clients": 2, "dim": 2, "samples": 2, field: size}
    with pytest.raises(InputError, match=field):
        least_squares(**sizes)


def begin(config: Config) -> None:
    for cell in Cells(config).of(0):
        simulation_of(cell, config.run)


@pytest.mark.parametrize("size", TOO_MUCH)
@pytest.mark.parametrize(
    "field", ["local.steps", "local.epochs", "algorithm.1.steps", "algorithm.1.epochs"]
)
def test_local_training(size: int, field: str) -> None:
    with pytest.raises(InputError, match=field.rpartition(".")[2]):
        begin(small(f"{field}={size}"))


@pytest.mark.parametrize("size", TOO_MUCH)
def test_training_of_the_server(size: int) -> None:
    with pytest.raises(InputError, match="server_steps"):
        begin(
            small(
                "algorithm.1.name=safari", "algorithm.1.q=0.5", f"algorithm.1.server_steps={size}"
            )
        )


def test_a_batch_larger_than_the_data_is_all_of_it() -> None:
    begin(small(f"local.batch_size={2**70}"))
