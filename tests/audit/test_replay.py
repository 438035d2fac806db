"""The emitted experiment is read, runs, and replays the log."""

import re
from pathlib import Path

import numpy as np
import pytest

from turnout.audit.audit import Audit, audit
from turnout.audit.history import from_mask
from turnout.audit.replay import chosen, deal, write_replay
from turnout.experiments.config import Config
from turnout.experiments.read import read
from turnout.experiments.run import run_experiment
from turnout.experiments.world import Settings
from turnout.participation import excluded, load, markov


def found(clients: int = 30, absent: int = 0) -> Audit:
    process = markov(np.linspace(0.05, 0.8, clients))
    if absent:
        process = excluded(process, list(range(absent)))
    return audit(from_mask(process.mask(120)))


def test_it_replays_the_log(tmp_path: Path) -> None:
    audited = found()
    config = read(write_replay(tmp_path, audited.history, audited.advice, None))
    setting = Settings(config).of(config.run.seeds[0])
    rows = chosen(audited.history)
    mask = setting.world.participation.mask(120)
    assert (mask == audited.history.dense(rows).T).all()
    assert (np.diff(mask.sum(axis=0)) >= 0).all(), "the rarest first"
    # Repeated beyond its end
    assert (setting.world.participation.mask(130)[120:] == mask[:10]).all()


@pytest.mark.parametrize("absent", [0, 6])
def test_it_runs(tmp_path: Path, absent: int) -> None:
    audited = found(absent=absent)
    assert audited.advice.method.name == ("safari" if absent else "fedau")
    path = write_replay(tmp_path, audited.history, audited.advice, None)
    config = read(path, ["run.rounds=4", "run.seeds=[0]", "run.plots=false", "run.tail=2"])
    outcome = run_experiment(config, tmp_path / "run")
    assert not outcome.failures
    labels = [method.label for method in config.algorithm]
    assert labels[:2] == ["average participating", audited.advice.method.label]
    assert set(outcome.results.labels()) == set(labels)


def test_class_counts_are_dealt(tmp_path: Path) -> None:
    audited = found(clients=12)
    counts = np.zeros((12, 3), dtype=int)
    counts[np.arange(12), np.arange(12) % 3] = 10
    counts[0] = 0
    lines = [f"{n},{','.join(map(str, row))}" for n, row in enumerate(counts)]
    (tmp_path / "classes.csv").write_text("client,a,b,c\n" + "\n".join(lines) + "\n")
    audited = audit(audited.history, classes=tmp_path / "classes.csv")
    path = write_replay(tmp_path, audited.history, audited.advice, audited.classes)
    config = read(path)
    setting = Settings(config).of(config.run.seeds[0])
    world = setting.world
    assert world.clients == 12
    labels = world.train.targets.numpy()
    for place, client in enumerate(chosen(audited.history).tolist()):
        held = set(labels[world.offsets[place] : world.offsets[place + 1]].tolist())
        assert held == ({client % 3} if client else {place % 10}), "no counts: some one digit"


def test_everyone_gets_a_sample(tmp_path: Path) -> None:
    """400 clients of one class, of which there are 144 samples."""
    from turnout.data.load import load as load_data

    deal(tmp_path, np.array([[5, 0]] * 400 + [[0, 500]]))
    train, _ = load_data(str(tmp_path), features=["pixels"], client="client")
    assert len(np.unique(train.owners)) == 401


def test_of_many_clients_some(tmp_path: Path) -> None:
    process = markov(np.linspace(0.05, 0.8, 700))
    audited = audit(from_mask(process.mask(60)))
    path = write_replay(tmp_path, audited.history, audited.advice, None)
    assert load(tmp_path / "log.parquet").clients == 500
    assert "500 of 700 clients" in path.read_text()
    kept = audited.rates.rate[chosen(audited.history)]
    assert abs(kept.mean() - audited.rates.rate.mean()) < 0.01


def tail(config: Config, folder: Path) -> dict[str, float]:
    """Mean test accuracy of the last hundred rounds."""
    results = run_experiment(config, folder).results
    return {
        label: float(np.mean([cell.curve("test_accuracy")[1][-10:] for cell in results.of(label)]))
        for label in results.labels()
    }


@pytest.mark.slow
def test_the_recommendation_beats_plain_averaging_on_phones(
    shared_data: Path, tmp_path: Path
) -> None:
    audited = audit(shared_data / "traces" / "phones300.csv")
    path = write_replay(tmp_path, audited.history, audited.advice, None)
    text = re.sub(r'\[\[algorithm\]\]\nname = "amplified".*', "", path.read_text(), flags=re.S)
    path.write_text(text)
    accuracy = tail(read(path, ["run.plots=false"]), tmp_path / "run")
    assert accuracy[audited.advice.method.label] >= accuracy["average participating"] + 0.015
