"""What objects look like at a prompt and in a notebook: short, and what one wants to know."""

import re

import pytest

from turnout import Local, Model, World, algorithms, data, participation, simulate


@pytest.fixture(scope="module")
def world() -> World:
    train, test = data.digits()
    left, server = data.auxiliary(train, size=50, seed=0)
    partition = data.iid(len(left), clients=10, seed=0)
    return World.build(left, partition, test, participation.bernoulli(0.5, clients=10), server)


def test_reprs_are_one_line_that_says_how_much_there_is(world: World) -> None:
    model = Model.of("logistic", (1, 8, 8), 10)
    run = simulate(algorithms.fedau(), world, model, rounds=3)
    reprs = {
        repr(world.train): "samples of 1×8×8 uint8, 10 classes",
        repr(
            data.iid(10, clients=4, seed=0)
        ): "<partition: 4 clients with 10 samples, 2 to 3 each>",
        repr(world.participation): "<bernoulli: 10 clients, each comes in 50 % of rounds>",
        repr(participation.given([[True]])): "<given: 1 client",
        repr(world): "50 samples at the server",
        repr(model): "<model: Flatten → Dense; 650 parameters, cross_entropy>",
        repr(run): "<run of fedau(): 3 rounds, test_accuracy 0.",
        repr(data.quadratics([[0.0], [4.0]])): "<quadratics: 2 clients, 1-dimensional, L = 1",
        repr(Local()): "Local(lr=0.1, steps=5",
    }
    for text, part in reprs.items():
        assert part in text
        assert "\n" not in text
        assert len(text) < 260


def test_notebooks_show_tables(world: World) -> None:
    run = simulate(algorithms.fedau(), world, Model.of("logistic", (1, 8, 8), 10), rounds=2)
    shown = [
        (run, ("fedau()", "test accuracy", "2 rounds")),
        (algorithms.safari(q=0.8), ("safari", "20 % of rounds")),
        (participation.summarise(world.participation, rounds=9), ("bernoulli", "realised")),
    ]
    for thing, parts in shown:
        html = thing._repr_html_()
        assert html.startswith("<table>")
        assert html.endswith("</table>")
        assert not re.search(r"<(?!/?(table|caption|b|tbody|tr|th|td)\b)", html)
        for part in parts:
            assert part in html
    assert "at the server" in world._repr_html_()


def test_a_run_that_diverged_says_so(world: World) -> None:
    method = algorithms.fedavg(server_lr=1e38, local=Local(lr=1e9))
    run = simulate(method, world, Model.of("logistic", (1, 8, 8), 10), rounds=3)
    assert "diverged in round" in repr(run)
    assert "diverged in round" in run._repr_html_()
