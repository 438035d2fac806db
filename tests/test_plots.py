"""Figures of runs in memory, as notebooks show them."""

import numpy as np
import pytest

from turnout import InputError, Model, World, algorithms, data, participation, plots, simulate
from turnout.runs import Run


@pytest.fixture(scope="module")
def runs() -> dict[str, Run]:
    train, test = data.digits()
    partition = data.iid(len(train), clients=12, seed=0)
    process = participation.excluded(participation.bernoulli(0.5, clients=12), absent=[3])
    world = World.build(train, partition, test, process)
    model = Model.of("logistic", (1, 8, 8), 10)
    return {
        name: simulate(method, world, model, rounds=6, evaluate_every=2)
        for name, method in {"plain": algorithms.fedavg(), "weighted": algorithms.fedau()}.items()
    }


@pytest.mark.parametrize("name", ["accuracy", "loss", "weights", "deciles", "spread", "served"])
def test_each_figure_is_a_picture_that_names_the_runs(runs: dict[str, Run], name: str) -> None:
    drawn = getattr(plots, name)(runs)
    assert drawn._repr_png_().startswith(b"\x89PNG")
    named = [text.get_text() for legend in drawn.legends for text in legend.get_texts()]
    named += [text.get_text() for axes in drawn.axes for text in axes.get_yticklabels()]
    assert {"plain", "weighted"} <= set(named)


def test_curves_have_the_runs_numbers(runs: dict[str, Run]) -> None:
    lines = {line.get_label(): line for line in plots.accuracy(runs).axes[0].lines}
    rounds, values = runs["weighted"].curve()
    assert lines["weighted"].get_xdata().tolist() == rounds == [2, 4, 6]
    assert lines["weighted"].get_ydata() == pytest.approx([100 * value for value in values])


def test_a_process_is_drawn_from_frequent_to_rare() -> None:
    process = participation.given(np.array([[True, False, True], [False, False, True]]))
    (image,) = plots.participation(process, rounds=2).axes[0].images
    assert image.get_array().tolist() == [[1, 1], [1, 0], [0, 0]]


def test_what_cannot_be_drawn_is_said() -> None:
    with pytest.raises(InputError, match="runs are empty"):
        plots.accuracy({})
    problem = data.quadratics([[0.0], [2.0]])
    world = World.build(problem.pool, problem.partition, problem.pool, participation.always(2))
    run = simulate(algorithms.fedavg(), world, Model.of("point", (1,)), rounds=1)
    assert plots.accuracy({"one": run}).axes[0].get_ylabel() == "test loss"
    with pytest.raises(InputError, match="no accuracies of clients"):
        plots.spread({"one": run})
