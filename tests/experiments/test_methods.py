"""Tables [[algorithm]] become the algorithms that they describe."""

from pathlib import Path

import numpy as np
import pytest
from tests.experiments.worlds import small

from turnout import round as protocol
from turnout.algorithm import Algorithm
from turnout.algorithms import fedau
from turnout.errors import InputError
from turnout.experiments.config import Config
from turnout.experiments.methods import Known, algorithm, methods
from turnout.experiments.read import configure, parse
from turnout.experiments.world import Settings
from turnout.parts.local import Halve, Piecewise

RATES = np.array([0.5, 0.25, 0.0])
LABELS = np.array([[3.0, 0.0], [0.0, 1.0], [2.0, 2.0]])


def with_algorithms(text: str, *changes: str) -> Config:
    table = small(*changes).model_dump()
    return configure({**table, "algorithm": parse(f"x = [{text}]")["x"]})


def only(text: str, *changes: str) -> Algorithm:
    """The one algorithm of an experiment."""
    (method,) = methods(with_algorithms(text, *changes)).values()
    return algorithm(method, Known(RATES, LABELS, np.ones(2)))


def test_options_reach_the_recipe() -> None:
    built = only('{name = "fedau", cutoff = 7, server_lr = 2.0}')
    assert built.name == "fedau"
    assert {k: v for k, v in built.settings.items() if k != "local"} == {
        "cutoff": 7, "server_lr": 2.0, "decay": None, "groups": None
    }  # fmt: skip


def test_inf_is_no_cutoff() -> None:
    mask = np.zeros((80, 1), dtype=bool)
    mask[[70, 79]] = True
    weights = protocol.weights(only('{name = "fedau", cutoff = inf}'), mask)
    assert weights == pytest.approx(protocol.weights(fedau(cutoff=None), mask))


def test_local_settings_are_common_unless_a_method_has_its_own() -> None:
    common = only('{name = "fedavg"}', "local.lr=0.3", "local.epochs=2").local
    assert (common.lr, common.steps, common.epochs) == (0.3, None, 2)
    own = only('{name = "fedavg", lr = 0.7, steps = 4}', "local.lr=0.3", "local.epochs=2").local
    assert (own.lr, own.steps, own.epochs) == (0.7, 4, None)


def test_schedules() -> None:
    halved = only('{name = "fedavg"}', "local.schedule={halve_every = 10, after = 5}")
    assert halved.local.lr == Halve(0.1, 10, 5)
    stepped = only('{name = "fedavg"}', "local.schedule={factors = [1.0, 0.1], until = [9]}")
    assert stepped.local.lr == Piecewise((0.1, 0.1 * 0.1), (9,))


def test_a_wrapper_wraps_what_it_is_told_and_passes_local_settings_on() -> None:
    built = only('{name = "safari", q = 0.5, lr = 0.2, inner = {name = "fedau", cutoff = 3}}')
    assert built.name == "safari"
    assert built.assistance is not None
    assert built.assistance.q == 0.5
    assert built.local.lr == 0.2
    assert built.settings["inner"].settings["cutoff"] == 3
    nested = only('{name = "amplified", inner = {name = "safari", inner = "mifa"}}')
    assert nested.memory is not None
    assert nested.assistance is not None


def test_a_wrapper_that_fedavg_does_not_suit_has_another_inner_method() -> None:
    built = only('{name = "stand_in", lr = 0.2}')
    assert built.settings["inner"].name == "average_all"
    assert built.local.lr == 0.2
    with pytest.raises(InputError, match=r"algorithm.0 \(stand_in\): inner is fedavg, in which"):
        only('{name = "stand_in", inner = "fedavg"}')


def test_inner_settings_win_over_outer_ones() -> None:
    built = only('{name = "amplified", lr = 0.2, inner = {name = "fedavg", lr = 0.4}}')
    assert built.local.lr == 0.4


def test_known_gets_the_rates_of_those_that_come() -> None:
    weights = only('{name = "known"}').weight
    assert weights.weigh(weights.init(3), 0, np.array([0, 1])).tolist() == [2.0, 4.0]


def test_known_takes_given_probabilities() -> None:
    each = only('{name = "known", p = [0.1, 0.2, 0.5]}').weight
    assert each.weigh(each.init(3), 0, np.arange(3)).tolist() == pytest.approx([10.0, 5.0, 2.0])
    same = only('{name = "known", p = 0.5}').weight
    assert same.weigh(same.init(3), 0, np.arange(3)).tolist() == [2.0, 2.0, 2.0]


def test_known_without_rates_asks_for_p() -> None:
    (method,) = list(methods(small("algorithm.0.name=known")).values())[:1]
    with pytest.raises(InputError, match=r"algorithm.0 \(known\) needs p"):
        algorithm(method, Known())


def test_feddu_gets_the_classes_of_the_data() -> None:
    built = only('{name = "feddu"}')
    assert built.settings["labels"] is LABELS
    assert repr(built).startswith("feddu(labels=array([[3., 0.]")
    given = only('{name = "feddu", labels = [[1, 2]], server_labels = [1, 1]}')
    assert given.settings["labels"] == [[1, 2]]
    (method,) = list(methods(small("algorithm.0.name=feddu")).values())[:1]
    with pytest.raises(InputError, match=r"algorithm.0 \(feddu\) needs labels, and the samples"):
        algorithm(method, Known())
    with pytest.raises(InputError, match="needs server_labels, and the server has no samples"):
        algorithm(method, Known(labels=LABELS))


def test_what_a_world_knows() -> None:
    world = Settings(small()).of(0).world
    known = Known.of(world)
    assert known.labels is not None
    assert known.labels.sum(1).tolist() == np.diff(world.offsets).tolist()
    assert (known.labels[3] > 0).sum() <= 2  # shards of two classes
    assert known.server_labels is not None
    assert known.server_labels.sum() == 40


def test_a_recipe_of_ones_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "my_methods.py").write_text(
        "from turnout.algorithms import fedavg\n"
        "from turnout.parts.local import Local\n"
        "def slow(rate: float = 0.5, local: Local = Local()):\n"
        "    return fedavg(server_lr=rate, local=local)\n"
        "def nothing():\n"
        "    return 3\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    built = only('{name = "my_methods:slow", rate = 0.25, lr = 0.9}')
    assert built.settings["server_lr"] == 0.25
    assert built.local.lr == 0.9
    with pytest.raises(InputError, match="returned a int; it must return a turnout Algorithm"):
        only('{name = "my_methods:nothing"}')
    with pytest.raises(InputError, match="cannot be imported"):
        only('{name = "my_methods:missing"}')


def labels(text: str) -> list[str]:
    return list(methods(with_algorithms(text)))


def test_labels_tell_methods_apart() -> None:
    assert labels('{name = "fedau"}, {name = "safari", inner = "fedau"}') == [
        "fedau",
        "safari(fedau)",
    ]
    assert labels('{name = "fedau", cutoff = 5}, {name = "fedau", cutoff = "none"}') == [
        "fedau cutoff=5",
        "fedau cutoff=none",
    ]
    with pytest.raises(InputError, match="2 algorithms are called 'a'"):
        labels('{name = "fedau", label = "a"}, {name = "mifa", label = "a"}')
