"""Implicit weights, the cutoff, and the advice that follows."""

from pathlib import Path

import numpy as np
import pytest

from turnout.algorithms import fedau, fedavg
from turnout.audit.audit import audit
from turnout.audit.classes import read_classes
from turnout.audit.cutoff import cutoff, weights
from turnout.audit.history import from_mask, from_pairs
from turnout.audit.impact import impact
from turnout.audit.rates import rates
from turnout.errors import InputError
from turnout.participation import bernoulli, excluded, markov
from turnout.theory.objective import realised


def test_implicit_weights_are_those_of_fedavg_along_the_mask() -> None:
    mask = markov(np.linspace(0.05, 0.9, 12)).mask(200)
    history = from_mask(mask)
    found = impact(history, rates(history)).objective
    np.testing.assert_allclose(found.shares, realised(fedavg(), mask).shares)


@pytest.mark.parametrize("K", [1, 3, 20, 500])
def test_weights_are_those_of_fedau_along_the_mask(K: int) -> None:
    mask = markov(np.linspace(0.05, 0.9, 12), on=0.1).mask(200)
    history = from_mask(mask)
    round, first = history.round.astype(np.int64), history.bounds[:-1]
    opened = np.concatenate([[0], round[:-1] + 1])
    opened[first] = 0
    omega = weights(round, opened, first, history.counts, K)
    shares = np.add.reduceat(omega, first)
    np.testing.assert_allclose(shares / shares.sum(), realised(fedau(cutoff=K), mask).shares)


def test_the_cutoff_is_the_best_of_those_tried() -> None:
    mask = markov(np.linspace(0.05, 0.9, 30), seed=4).mask(600)
    best = cutoff(from_mask(mask))
    assert best is not None

    def wrong(K: int) -> float:
        return realised(fedau(cutoff=K), mask).total_variation

    assert wrong(int(best.value)) <= min(wrong(K) for K in (2, 10, 93)) + 1e-9
    assert best.value <= 600 / np.log(600)


def test_equal_clients_need_nothing() -> None:
    found = audit(from_mask(bernoulli(0.3, clients=40).mask(400)))
    assert found.advice.method.name == "fedavg"
    assert found.impact.objective.total_variation <= 1.25 * found.impact.by_chance


def test_unequal_clients_need_weights() -> None:
    found = audit(from_mask(bernoulli(np.linspace(0.02, 0.9, 40)).mask(400)))
    assert found.advice.method.name == "fedau"
    assert found.advice.server_samples is None


def test_a_missing_share_needs_server_data() -> None:
    process = excluded(bernoulli(0.3, clients=40), list(range(8)))
    found = audit(from_mask(process.mask(400)))
    assert found.impact.objective.missing == pytest.approx(0.2)
    assert found.advice.method.name == "safari"
    assert found.advice.server_samples == 500


def class_file(folder: Path, text: str) -> Path:
    path = folder / "classes.csv"
    path.write_text(text)
    return path


def test_classes_at_risk(tmp_path: Path) -> None:
    mask = np.zeros((100, 3), dtype=bool)
    mask[:, 0] = True
    mask[::10, 1] = True
    path = class_file(tmp_path, "client,cat,dog\n0,10,0\n1,5,5\n2,0,10\n")
    found = audit(from_mask(mask), classes=path).impact.classes
    assert found is not None
    # 90 rounds with client 0 alone, 10 with a half of each: p̃ = 0.95, 0.05, 0.
    np.testing.assert_allclose(found.implicit, [0.975, 0.025])
    np.testing.assert_allclose(found.intended, [0.5, 0.5])
    np.testing.assert_allclose(found.unseen, [0, 2 / 3])
    assert found.names[found.worst] == "dog"
    assert found.at_risk == [1]
    assert found.total_variation == pytest.approx(0.475)


def test_long_and_wide_class_files_say_the_same(tmp_path: Path) -> None:
    history = from_mask(np.ones((3, 2), dtype=bool))
    wide, _ = read_classes(class_file(tmp_path, "client,2,10\n0,1,2\n1,3,0\n"), history)
    text = "client,label,count\n0,10,2\n1,2,3\n0,2,1\n"
    long, same = read_classes(class_file(tmp_path, text), history)
    assert same is history
    assert wide.names == long.names == ("2", "10")
    assert (wide.counts == long.counts).all()


def test_who_has_data_but_no_entry_is_never_seen(tmp_path: Path) -> None:
    path = class_file(tmp_path, "client,a,b\nx,1,0\nz,0,3\ny,0,4\n")
    history = from_pairs(
        [0, 1], [0, 1], clients=3, rounds=2, names=["w", "x"]
    )  # one without a name
    counts, extended = read_classes(path, history)
    assert extended.clients == 4
    assert [extended.name(n) for n in range(4)] == ["w", "x", "y", "z"]
    assert counts.counts.tolist() == [[0, 0], [1, 0], [0, 4], [0, 3]]
    assert extended.counts.tolist() == [1, 1, 0, 0]
    found = audit(history, classes=path)
    assert found.impact.objective.missing == pytest.approx(0.5)
    assert found.history.mends == {"clients without any entry, known from the class counts": 2}


def test_numbers_in_a_class_file_go_on_where_the_log_ends(tmp_path: Path) -> None:
    history = from_mask(np.ones((3, 2), dtype=bool))
    _, extended = read_classes(class_file(tmp_path, "client,a\n3,1\n0,1\n2,5\n"), history)
    assert extended.counts.tolist() == [3, 3, 0, 0]
    path = class_file(tmp_path, "client,a\n0,1\n7,1\n")
    with pytest.raises(InputError, match=r"line 3, is '7'.*from 0 to 1 in the log, or the next"):
        read_classes(path, history)


def test_a_class_file_of_other_clients_is_refused(tmp_path: Path) -> None:
    history = from_pairs([0, 1], [0, 1], clients=2, rounds=2, names=["w", "x"])
    with pytest.raises(InputError, match=r"line 2, is 'X'; it must be a client of the log"):
        read_classes(class_file(tmp_path, "client,a\nX,1\nW,1\n"), history)
