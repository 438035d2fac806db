"""Cells: named by their content, played once, resumed, and going on from a warm-up's model."""

import json

import numpy as np
import pytest
import torch

from turnout import simulator
from turnout.reproduce import cache, play
from turnout.reproduce.grid import cells, content
from turnout.reproduce.item import find, read_item
from turnout.reproduce.run import play_all
from turnout.simulator import DivergenceError

TEXT = """
[item]
title = "a title"
rows = ["s"]
columns = ["method"]
[run]
rounds = 6
seeds = [0, 1]
evaluate_every = 2
[data]
name = "digits"
partition = { name = "iid", clients = 6 }
[participation]
process = "uniform"
per_round = 3
absent = 0
[local]
steps = 2
[[algorithm]]
name = "fedavg"
[[algorithm]]
name = "fedau"
[[grid]]
axis = "s"
set = "participation.absent"
values = [0, 2]
"""
WARM = TEXT + '[warm_up]\nrounds = 4\nset = ["local.lr=0.02"]\n'


def of(text=TEXT, **changed):
    for before, after in changed.items():
        assert before in text
        text = text.replace(before, after)
    return cells(read_item("safari", "mine", text), "paper")


def test_one_for_each_point_method_and_seed() -> None:
    found = of()
    points = [(cell.point["s"], cell.point["method"], cell.seed) for cell in found]
    assert points == [
        (f"s={s}", method, seed)
        for seed in (0, 1)
        for s in (0, 2)
        for method in ("fedavg", "fedau")
    ]
    assert [cell.config.participation.absent for cell in found[:4]] == [0, 0, 2, 2]


def test_the_key_is_the_content() -> None:
    plain = [cell.key for cell in of()]
    assert len(set(plain)) == len(plain)
    renamed = TEXT.replace('name = "fedavg"', 'name = "fedavg"\nlabel = "another name"')
    assert [cell.key for cell in of(renamed)] == plain
    elsewhere = TEXT.replace("evaluate_every", 'engine = "reference"\ntail = 3\nevaluate_every')
    assert [cell.key for cell in of(elsewhere)] == plain
    assert not set(plain) & {cell.key for cell in of(TEXT.replace("steps = 2", "steps = 3"))}
    assert not set(plain) & {cell.key for cell in of(WARM)}
    # Defaults are part of the content, so that a default which changes does not go unnoticed.
    assert content(of()[0])["local"]["lr"] == 0.1


def test_safari_tables_share_cells() -> None:
    keys = {
        name: {cell.key for item in find("safari", name) for cell in cells(item, "paper")}
        for name in (
            "table-1-mnist",
            "table-2-mnist",
            "table-3",
            "table-5-mnist",
            "table-8",
            "table-10",
        )
    }
    assert keys["table-1-mnist"] < keys["table-2-mnist"] == keys["table-8"]
    for name in ("table-3", "table-5-mnist", "table-10"):
        assert len(keys[name] & keys["table-8"]) >= 10
    assert len(set().union(*keys.values())) == 280


def test_played_once(tmp_path, monkeypatch) -> None:
    calls = []
    real = cache.play
    monkeypatch.setattr(
        cache, "play", lambda seats, *rest: calls.extend(seats) or real(seats, *rest)
    )
    chosen = of()[:2]
    told = []
    first = play_all(chosen, tmp_path, told=told.append)
    again = play_all(of()[:3], tmp_path, told=told.append)
    assert len(calls) == 3
    assert [t.done for t in told] == [1, 2, 3]
    assert [t.total for t in told] == [2, 2, 3]
    assert again[0].record == json.loads(json.dumps(first[0].record))


def test_an_interrupted_cell_goes_on_where_it_stopped(tmp_path, monkeypatch) -> None:
    cell = of()[1]
    whole = cache.obtain(cell, tmp_path / "whole")
    monkeypatch.setattr(play, "SAVE_EVERY", 0.0)

    def stop(done: int, rounds: int) -> None:
        if done == 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        cache.obtain(cell, tmp_path / "cut", stop)
    rounds = []
    resumed = cache.obtain(cell, tmp_path / "cut", lambda done, rest: rounds.append(done))
    assert rounds == [4, 5, 6]  # the checkpoint after round 3 was the last one
    assert resumed["metrics"] == whole["metrics"]
    assert resumed["clients"] == whole["clients"]
    assert [path.suffix for path in (tmp_path / "cut").iterdir()] == [".json"]


def test_a_warm_up_is_the_same_clock(tmp_path) -> None:
    """4 rounds and then 6 more with the same settings are 10 rounds of FedAvg."""
    warm = of(WARM.replace('set = ["local.lr=0.02"]', ""))
    assert warm[0].point["method"] == "fedavg"
    parted = cache.obtain(warm[0], tmp_path)
    straight = cache.obtain(of(TEXT.replace("rounds = 6", "rounds = 10"))[0], tmp_path)
    shared = [m for m in straight["metrics"] if m["round"] > 4]
    for one, other in zip(parted["metrics"], shared, strict=True):
        assert one["round"] == other["round"]
        assert one["delivered"] == other["delivered"]
        np.testing.assert_allclose(one["test_loss"], other["test_loss"], rtol=1e-6)


def test_methods_share_the_warm_up(tmp_path) -> None:
    found = of(WARM)
    assert found[0].after is not None
    assert found[0].after.key == found[1].after.key != found[2].after.key
    assert found[0].after.config.local.lr == 0.02
    assert found[0].config.local.lr == 0.1
    told = []
    play_all(found[:2], tmp_path, told=told.append)
    assert [t.cell.point["method"] for t in told] == ["warm-up", "fedavg", "fedau"]


def test_what_a_killed_process_left_half_written_is_swept_away(tmp_path) -> None:
    found = of(WARM)[:1]
    assert found[0].after is not None
    drafts = [
        tmp_path / f".writing-123-{name}"
        for name in (
            f"{found[0].key}.json",
            f"{found[0].after.key}.json",
            f"{found[0].after.key}.safetensors",
        )
    ]
    others = tmp_path / ".writing-123-another.json"
    for path in (*drafts, others):
        path.write_text("{")
    play_all(found, tmp_path)
    assert others.exists()
    assert not any(draft.exists() for draft in drafts)


def test_a_diverging_cell_is_kept(tmp_path, monkeypatch) -> None:
    real = simulator.advance

    def advance(simulation, progress):
        if progress.server.round == 3:
            raise DivergenceError("fedavg", 3)
        return real(simulation, progress)

    monkeypatch.setattr(simulator, "advance", advance)
    record = cache.obtain(of()[0], tmp_path)
    assert (record["status"], record["round"]) == ("diverged", 3)
    assert [m["round"] for m in record["metrics"]] == [2]


def test_two_processes_give_the_same(tmp_path) -> None:
    chosen = of()[:2]
    torch.set_num_threads(1)
    one = play_all(chosen, tmp_path / "one")
    two = play_all(chosen, tmp_path / "two", jobs=2)
    assert [p.record["metrics"] for p in one] == [p.record["metrics"] for p in two]


def test_results_of_other_code_are_not_believed(tmp_path, monkeypatch, caplog) -> None:
    cell, folder = of()[0], tmp_path / "cells"
    before = cache.obtain(cell, folder)
    assert cache.recall(cell, folder) == before
    monkeypatch.setattr(cache, "fingerprint", lambda cell: "changed since")
    assert cache.recall(cell, folder) is None
    assert cache.recall(cell, folder, trust=True) == before
    with caplog.at_level("WARNING", "turnout"):
        (again,) = play_all([cell], folder, trust=True)
        assert again.record == before
        assert not caplog.messages
        (again,) = play_all([cell], folder)
    assert "1 of 1 results are of code that has changed since" in caplog.text
    assert again.record["code"] == "changed since"
    assert again.record["metrics"] == before["metrics"]


def test_what_other_code_has_begun_is_not_finished_by_this(tmp_path, monkeypatch) -> None:
    cell = of()[0]
    monkeypatch.setattr(play, "SAVE_EVERY", 0.0)

    def stop(done: int, rounds: int) -> None:
        if done == 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        cache.obtain(cell, tmp_path, stop)
    monkeypatch.setattr(cache, "fingerprint", lambda cell: "changed since")
    rounds = []
    cache.obtain(cell, tmp_path, lambda done, rest: rounds.append(done))
    assert rounds == [1, 2, 3, 4, 5, 6]
    assert [path.suffix for path in tmp_path.iterdir()] == [".json"]


def test_the_data_are_named_by_their_content(tmp_path) -> None:
    one, two = (cache.obtain(cell, tmp_path)["data"] for cell in of()[:2])
    assert one == two
    assert len(one) == 16
    other = TEXT.replace(
        'name = "digits"\npartition = { name = "iid", clients = 6 }',
        'name = "quadratics"\nz = [[0.0], [2.0], [4.0]]',
    ).replace("absent = 0", "absent = 0\n[model]\nstart = [1.0]")
    assert cache.obtain(of(other)[0], tmp_path)["data"] != one
