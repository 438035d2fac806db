"""Whatever a file says of any option, the answer is an experiment or one sentence."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.experiments.worlds import small

from turnout.algorithms import RECIPES
from turnout.errors import InputError
from turnout.experiments.cells import simulation_of
from turnout.experiments.config import Config
from turnout.experiments.keys import SUPPLIED, WRAPPERS
from turnout.experiments.methods import SUPPLIED as OF_METHODS
from turnout.experiments.options import options
from turnout.experiments.plan import Cells
from turnout.experiments.read import configure
from turnout.experiments.world import PARTITIONS, PROBLEMS, given_data
from turnout.models import MODELS
from turnout.participation import PROCESSES

numbers = (
    st.integers(-3, 12)
    | st.floats(-2, 2)
    | st.sampled_from([float("inf"), float("nan"), 2**70, -(2**70), 1e300, 0.0, 1.0])
)
values = st.recursive(
    numbers | st.booleans() | st.sampled_from(["none", "", "zero", "server", "no/such.csv"]),
    lambda inside: st.lists(inside, max_size=10),
    max_leaves=12,
)

Build = Callable[..., Any]


def tables(
    registry: dict[str, Build], key: str, supplied: tuple[str, ...]
) -> st.SearchStrategy[Any]:
    """One of the registered things, with anything for some of its options."""

    def table(name: str) -> st.SearchStrategy[dict[str, Any]]:
        known = options(registry[name], supplied)
        anything = dict.fromkeys(known, values)
        return st.fixed_dictionaries({key: st.just(name)}, optional=anything)

    return st.sampled_from(sorted(registry)).flatmap(table)


def answered(use: Callable[[], object]) -> None:
    """`use` works, or says in one sentence why it does not."""
    said = ""
    try:
        use()
    except InputError as error:
        said = str(error)
    assert "\n" not in said


def with_table(section: str, table: Any) -> dict[str, Any]:
    return {**small("run.seeds=[0]").model_dump(), section: table}


def begin(config: Config) -> None:
    """Everything that is checked before the first round."""
    for cell in Cells(config).of(config.run.seeds[0]):
        simulation_of(cell, config.run)


@given(tables(dict(RECIPES), "name", OF_METHODS))
def test_any_option_of_an_algorithm(table: dict[str, Any]) -> None:
    answered(lambda: begin(configure(with_table("algorithm", [table]))))


PLAIN = {name: build for name, build in PROCESSES.items() if name not in WRAPPERS}


@given(tables(PLAIN, "process", SUPPLIED))
def test_any_option_of_a_process(table: dict[str, Any]) -> None:
    answered(lambda: begin(configure(with_table("participation", table))))


@given(
    st.fixed_dictionaries(
        {"process": st.just("bernoulli"), "p": st.just(0.5)},
        optional=dict.fromkeys(
            ["sampled", "absent", "absent_classes", "absent_share", "lost", "seed", "rates"], values
        ),
    )
)
def test_any_value_of_what_goes_around_a_process(table: dict[str, Any]) -> None:
    answered(lambda: begin(configure(with_table("participation", table))))


@given(tables(dict(PARTITIONS), "name", SUPPLIED), values)
def test_any_option_of_a_partition(table: dict[str, Any], clients: object) -> None:
    data = {"partition": {"clients": clients, **table}}
    answered(lambda: begin(configure(with_table("data", data))))


@given(tables(dict(PROBLEMS), "name", ("seed",)))
def test_any_option_of_a_problem(table: dict[str, Any]) -> None:
    answered(lambda: given_data(configure(with_table("data", table)).data, 0))


MODEL_OPTIONS = ("input_shape", "classes", "dim")


@given(tables({name: recipe.build for name, recipe in MODELS.items()}, "name", MODEL_OPTIONS))
def test_any_option_of_a_model(table: dict[str, Any]) -> None:
    answered(lambda: begin(configure(with_table("model", table))))


@given(
    st.dictionaries(
        st.sampled_from(
            ["rounds", "seeds", "engine", "dtype", "threads", "evaluate_every", "tail"]
        ),
        values,
    )
)
@settings(max_examples=60)
def test_any_value_in_run(table: dict[str, Any]) -> None:
    answered(lambda: begin(configure(with_table("run", {"rounds": 3, **table}))))


@pytest.mark.parametrize("seed", [2**63, 2**70])
def test_seeds_that_no_generator_takes_are_refused(seed: int) -> None:
    with pytest.raises(InputError, match=r"run.seeds is"):
        small(f"run.seeds=[{seed}]")
