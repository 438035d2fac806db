"""Seeds and step sizes that train together: who does, what comes of it, and of kills in its midst."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.reproduce.test_cells import TEXT, WARM, of

from turnout import simulator, together
from turnout.experiments.interrupt import Asked, Interrupted
from turnout.reproduce import cache, groups, play
from turnout.reproduce.grid import Cell
from turnout.reproduce.groups import grouped
from turnout.reproduce.run import Played, play_all
from turnout.simulator import DivergenceError

SEEDS = TEXT.replace("seeds = [0, 1]", "seeds = [0, 1, 2]")
SIZES = TEXT + '[[grid]]\naxis = "lr"\nset = "local.lr"\nvalues = [0.1, 0.02]\n'
MEMORY = SEEDS.replace('name = "fedau"', 'name = "scaffold"')


def keys(found: list[list[Cell]]) -> list[list[str]]:
    return [[cell.name for cell in group] for group in found]


def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(groups, "room", lambda simulation, rounds: 1)


def every(cells: list[Cell]) -> list[str]:
    return [cell.key for cell in cells]


def test_seeds_of_a_method_at_a_point_are_a_group() -> None:
    chosen = of(SEEDS)
    found = grouped(chosen, every(chosen))
    assert len(found) == 4
    for group in found:
        assert [cell.seed for cell in group] == [0, 1, 2]
        assert len({(cell.point["method"], cell.point["s"]) for cell in group}) == 1
    assert [group[0].key for group in found] == every(chosen)[:4]


def test_step_sizes_are_in_it_and_other_settings_are_not() -> None:
    found = grouped(of(SIZES), every(of(SIZES)))
    assert [len(group) for group in found] == [4] * 4
    assert all(len({cell.point["s"] for cell in group}) == 1 for group in found)


def test_groups_are_of_all_cells_and_keep_what_is_missing(monkeypatch) -> None:
    monkeypatch.setattr(groups, "room", lambda simulation, rounds: 2)
    chosen = of(
        SEEDS.replace("[0, 1, 2]", "[0, 1, 2, 3, 4]"), **{"values = [0, 2]": "values = [0]"}
    )
    fedau = [cell for cell in chosen if cell.point["method"] == "fedau"]
    whole = grouped(fedau, every(fedau))
    assert [[cell.seed for cell in group] for group in whole] == [[0, 1], [2, 3], [4]]
    rest = grouped(fedau, every(fedau)[2:4] + every(fedau)[:1])
    assert [[cell.seed for cell in group] for group in rest] == [[0], [2, 3]]


def test_convolutions_and_what_is_large_stay_alone(monkeypatch) -> None:
    chosen = of(SEEDS + '[model]\nname = "cnn"\n')
    assert {len(group) for group in grouped(chosen, every(chosen))} == {1}
    chosen = of(SEEDS)
    monkeypatch.setattr(together, "LIMIT", 1000)
    assert {len(group) for group in grouped(chosen, every(chosen))} == {1}


def close(one: list[Played], other: list[Played]) -> None:
    for mine, alone in zip(one, other, strict=True):
        assert mine.record["key"] == alone.record["key"]
        assert mine.record["status"] == alone.record["status"]
        for a, b in zip(mine.record["metrics"], alone.record["metrics"], strict=True):
            assert (a["round"], a["delivered"]) == (b["round"], b["delivered"])
            np.testing.assert_allclose(a["test_loss"], b["test_loss"], rtol=1e-5)
        mine_, alone_ = mine.record["clients"], alone.record["clients"]
        assert [c["delivered"] for c in mine_] == [c["delivered"] for c in alone_]


@pytest.mark.parametrize("text", [MEMORY, SIZES, WARM], ids=["seeds", "step sizes", "warm-up"])
def test_together_as_alone(tmp_path: Path, monkeypatch, text: str) -> None:
    chosen, blocks = of(text), []
    real = together.Joint.train
    monkeypatch.setattr(
        together.Joint,
        "train",
        lambda joint, cohorts: blocks.append(len(cohorts)) or real(joint, cohorts),
    )
    joined = play_all(chosen, tmp_path / "together")
    assert max(blocks) == 3 if text is MEMORY else 2
    blocks.clear()
    alone(monkeypatch)
    close(joined, play_all(chosen, tmp_path / "alone"))
    assert not blocks


def plain(folder: Path) -> dict[str, Any]:
    found = {}
    for path in folder.glob("*.json"):
        record = json.loads(path.read_text())
        found[path.name] = {k: v for k, v in record.items() if k not in ("seconds", "evaluating")}
    return found


@pytest.mark.parametrize("after", range(1, 7))
@pytest.mark.parametrize("how", ["asked", "killed"])
def test_stopped_anywhere_it_goes_on_to_the_bit(
    tmp_path: Path, monkeypatch, after: int, how: str
) -> None:
    chosen = of(MEMORY)[1::4]
    play_all(chosen, tmp_path / "whole")
    monkeypatch.setattr(play, "SAVE_EVERY", 0.0)
    asked = Asked()
    told: list[int] = []

    def tell(done: int, rounds: int) -> None:
        told.append(done)
        if len(told) == 3 * after - 1:  # in the midst of a round's members
            if how == "killed":
                raise KeyboardInterrupt
            asked.stop = True

    stopped = pytest.raises(Interrupted)
    if how == "asked" and after == 6:  # then it is done
        play_all(chosen, tmp_path / "cut", tell=tell, asked=asked)
    else:
        with stopped:
            play_all(chosen, tmp_path / "cut", tell=tell, asked=asked)
    told.clear()
    play_all(chosen, tmp_path / "cut", tell=lambda done, rounds: told.append(done))
    assert len(told) <= 3 * (7 - after)
    assert plain(tmp_path / "cut") == plain(tmp_path / "whole")
    assert not list((tmp_path / "cut").glob("*.partial"))


def diverging(monkeypatch, seed: int, round: int) -> None:
    real = simulator.closed

    def closed(simulation, progress, turn, blocks):
        happened = real(simulation, progress, turn, blocks)
        if simulation.training.seed == seed and turn.round == round:
            raise DivergenceError("fedau", round)
        return happened

    monkeypatch.setattr(simulator, "closed", closed)
    monkeypatch.setattr(together, "closed", closed)


@pytest.mark.parametrize("killed", ["never", "at its record", "at the next record"])
def test_who_diverges_ends_and_the_others_go_on(tmp_path: Path, monkeypatch, killed: str) -> None:
    """To the bit, too, if a kill comes just before or after its record is written."""
    chosen = of(MEMORY)[1::4]
    diverging(monkeypatch, seed=1, round=3)
    whole = play_all(chosen, tmp_path / "whole")
    assert [p.record["status"] for p in whole] == ["done", "diverged", "done"]
    assert [m["round"] for m in whole[1].record["metrics"]] == [2]
    if killed != "never":
        monkeypatch.setattr(play, "SAVE_EVERY", 0.0)
        real, written = cache.write, []

        def write(path: Path, text: str) -> None:
            written.append(path)
            if len(written) == 1 + (killed == "at the next record"):
                raise KeyboardInterrupt
            real(path, text)

        monkeypatch.setattr(cache, "write", write)
        with pytest.raises(Interrupted):
            play_all(chosen, tmp_path / "cut")
        monkeypatch.setattr(cache, "write", real)
        play_all(chosen, tmp_path / "cut")
        assert plain(tmp_path / "cut") == plain(tmp_path / "whole")
    # And nobody minds the company: the others are what they are without it.
    alone(monkeypatch)
    close(whole, play_all(chosen, tmp_path / "alone"))


def test_kept_by_only_some_all_begin_again(tmp_path: Path, monkeypatch) -> None:
    """Killed while the first checkpoints were being written."""
    chosen = of(MEMORY)[1::4]
    play_all(chosen, tmp_path / "whole")
    monkeypatch.setattr(play, "SAVE_EVERY", 0.0)
    real, saved = play.checkpoint.save, []

    def save(*what):
        saved.append(what)
        if len(saved) == 5:  # of round 1, that of the second
            raise KeyboardInterrupt
        return real(*what)

    monkeypatch.setattr(play.checkpoint, "save", save)
    with pytest.raises(Interrupted):
        play_all(chosen, tmp_path / "cut")
    told: list[int] = []
    play_all(chosen, tmp_path / "cut", tell=lambda done, rounds: told.append(done))
    assert told[0] == 1  # all three have round 0
    assert plain(tmp_path / "cut") == plain(tmp_path / "whole")


def test_in_other_company_each_goes_on_by_itself(tmp_path: Path, monkeypatch) -> None:
    chosen = of(MEMORY)[1::4]
    monkeypatch.setattr(play, "SAVE_EVERY", 0.0)

    def tell(done: int, rounds: int) -> None:
        if done == 4:
            raise KeyboardInterrupt

    with pytest.raises(Interrupted):
        play_all(chosen, tmp_path / "cut", tell=tell)
    told: list[int] = []
    found = play_all(chosen[:2], tmp_path / "cut", tell=lambda done, rounds: told.append(done))
    assert told == [4, 5, 6, 4, 5, 6]
    alone(monkeypatch)
    close(found, play_all(chosen[:2], tmp_path / "alone"))
