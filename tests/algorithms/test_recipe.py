"""What all named methods have in common."""

import pytest

import turnout
from turnout import algorithms
from turnout.algorithms import RECIPES
from turnout.parts.local import Local, proximal, sgd


def test_names_are_those_of_the_functions() -> None:
    assert {"fedavg", "fedau", "known", "safari", "scaffold", "wait_full"} <= set(RECIPES)
    for name, recipe in RECIPES.items():
        assert getattr(algorithms, name) is recipe
        assert recipe.__name__ == name
        assert recipe.__doc__, f"{name} says what it is"


def test_an_algorithm_knows_its_name_and_settings() -> None:
    method = algorithms.safari(0.5, inner=algorithms.fedau(cutoff=7))
    assert method.name == "safari"
    assert method.settings["q"] == 0.5
    assert repr(method) == "safari(q=0.5, inner=fedau(cutoff=7))"
    assert repr(algorithms.server_only(3)) == "server_only(server_steps=3)"
    assert repr(algorithms.mifa()) == "mifa()"


def test_settings_print_without_addresses() -> None:
    local = Local(rule=proximal(0.5, sgd(0.9, 0.01, 2.0)))
    text = repr(algorithms.scaffold(local=local).local.rule)
    assert text == ("control_variates(proximal(0.5, sgd(momentum=0.9, weight_decay=0.01, clip=2)))")
    assert "0x" not in repr(algorithms.fedavg(local=local))


def test_who_needs_nothing_but_sums() -> None:
    needs = [
        (algorithms.fedau(), True),
        (algorithms.scaffold(), True),
        (algorithms.mifa(memory="client"), True),
        (algorithms.mifa(), False),
        (algorithms.fedvarp(clusters=[0, 0]), False),
        (algorithms.wait_minibatch(), False),
    ]
    for method, sums in needs:
        assert method.sums_only == sums, method


def test_unknown_arguments_are_the_callers_mistake() -> None:
    with pytest.raises(TypeError, match="cutof"):
        turnout.algorithms.fedau(cutof=50)
