"""Implicit weights, the cutoff, and the advice that follows."""

from pathlib import Path

import numpy as np
import pytest

from turnout.algorithms import fedau, fedavg
from turnout.audit.audit import audit
from turnout.audit.classes import read_classes
from turnout.audit.cutoff import Stretches, cutoff, implicit, tenths, weights
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
    mask = excluded(markov(np.linspace(0.05, 0.9, 12), on=0.1), [7]).mask(200)
    shares = realised(fedau(cutoff=K), mask).shares
    np.testing.assert_allclose(implicit(from_mask(mask), K), shares)


def test_weights_by_hand() -> None:
    """Rounds 2, 3 and 8, cut at 4: intervals 3, 1, 4 and (open) 1; the first update has no weight yet."""
    round = np.array([2, 3, 8])
    stretches = Stretches(round, np.array([0, 3, 4]), np.array([0]), np.array([3]))
    assert weights(stretches, 4).tolist() == [1, 3, 8 / 3]


def test_the_cutoff_is_the_best_of_those_tried() -> None:
    mask = markov(np.linspace(0.05, 0.9, 30), seed=4).mask(600)
    best = cutoff(from_mask(mask))
    assert best is not None
    groups = tenths(mask.sum(axis=0))

    def wrong(K: int) -> float:
        shares = realised(fedau(cutoff=K), mask).shares
        return float(0.5 * np.abs((shares - 1 / 30) @ groups).sum())

    value = int(best.setting.value)
    assert best.misplaced[value] == pytest.approx(wrong(value))
    assert wrong(value) <= min(wrong(K) for K in (2, 10, 93)) + 1e-9
    assert value <= 600 / np.log(600)


def test_chance_within_a_tenth_does_not_keep_the_cutoff_small() -> None:
    """300 clients with a few spells each: by client, large weights look worse than small ones."""
    rates = np.repeat(np.linspace(0.03, 0.6, 10), 30)
    mask = markov(rates, on=0.01, seed=2).mask(900)
    history = from_mask(mask)
    best = cutoff(history)
    assert best is not None
    assert best.setting.value > 50
    one_each = cutoff(history, mix=np.eye(300))
    assert one_each is not None
    assert one_each.setting.value < 50


def test_with_classes_the_cutoff_is_judged_by_them() -> None:
    """One class comes always, one seldom: K is what brings the second back."""
    mask = np.zeros((400, 4), dtype=bool)
    mask[:, :2] = True
    mask[::20, 2:] = True
    mix = np.repeat(np.eye(2), 2, axis=0)
    best = cutoff(from_mask(mask), intended=np.array([1.0, 1.0, 3.0, 3.0]), mix=mix)
    assert best is not None
    assert best.among == "classes"
    assert best.setting.value >= 20
    shares = np.array([1, 1, 3, 3]) * implicit(from_mask(mask), int(best.setting.value))
    wrong = 0.5 * np.abs(shares @ mix / shares.sum() - [0.25, 0.75]).sum()
    assert best.misplaced[int(best.setting.value)] == pytest.approx(wrong)


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
