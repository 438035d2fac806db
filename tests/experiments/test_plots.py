"""Plots: what they show, and that they are there only when they have something to show."""

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure
from tests.experiments.worlds import small

import turnout
from turnout.experiments import curves, plots, presence
from turnout.experiments.results import Results
from turnout.experiments.run import run_experiment
from turnout.experiments.style import look

FULL = [
    "run.rounds=30",
    "run.evaluate_every=3",
    "participation.absent=2",
    "algorithm.1.label=FedAU, K → ∞",
]


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    return run_experiment(small(*FULL), tmp_path_factory.mktemp("runs") / "full").results


@pytest.fixture(scope="module")
def quadratics(tmp_path_factory: pytest.TempPathFactory) -> Results:
    config = small(
        "data={name = 'quadratics', z = [[0.0], [4.0]]}", "participation={process = 'always'}"
    )
    return run_experiment(config, tmp_path_factory.mktemp("runs") / "quadratics").results


def made(figure: Figure | None) -> Figure:
    assert figure is not None
    return figure


def legend(figure: Figure) -> list[str]:
    return [text.get_text() for each in figure.legends for text in each.get_texts()]


def test_every_plot_is_saved_as_png_and_svg(results: Results, tmp_path: Path) -> None:
    saved = plots.draw(results, tmp_path / "plots")
    assert {path.name for path in saved} == {
        f"{name}.{form}" for name in plots.PLOTS for form in ("png", "svg")
    }
    assert all(path.stat().st_size > 5000 for path in saved)


def test_equal_results_have_equal_plots(
    results: Results, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plots, "PLOTS", {"accuracy": plots.accuracy})
    one, two = (plots.draw(results, tmp_path / name) for name in ("one", "two"))
    assert [path.read_bytes() for path in one] == [path.read_bytes() for path in two]


def test_the_curve_is_the_mean_over_seeds_in_percent(results: Results) -> None:
    figure = made(plots.accuracy(results))
    axes = figure.axes[0]
    assert legend(figure) == results.labels() == ["fedavg", "FedAU, K → ∞"]
    expected = np.mean([cell.curve("test_accuracy")[1] for cell in results.of("fedavg")], axis=0)
    assert np.asarray(axes.lines[0].get_ydata()) == pytest.approx(100 * expected)
    assert axes.get_ylabel() == "test accuracy (%)"


def test_long_curves_are_smoothed_and_say_so(
    results: Results, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(curves, "_SMOOTH_ABOVE", 4)
    axes = made(plots.accuracy(results)).axes[0]
    assert axes.get_xlabel() == "round (running mean of 5 evaluations)"
    line = axes.lines[0]
    values = np.array([cell.curve("test_accuracy")[1] for cell in results.of("fedavg")])
    assert np.asarray(line.get_ydata())[0] == pytest.approx(100 * values[:, :5].mean())
    assert np.asarray(line.get_xdata())[0] == 15


def test_the_heat_map_has_every_delivery(results: Results) -> None:
    axes = made(plots.participation(results)).axes[0]
    shown = np.asarray(axes.images[0].get_array())
    log = results.cells[0].log()
    assert log is not None
    assert shown.shape == (10, 30)
    assert shown.sum() == log.mask().sum()
    assert "2 never deliver" in [text.get_text() for text in axes.texts]
    assert (shown[-2:] == 0).all()


def test_a_large_heat_map_is_thinned_to_shares(
    results: Results, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(presence, "_HEAT_ROWS", 4)
    monkeypatch.setattr(presence, "_HEAT_COLUMNS", 7)
    shown = np.asarray(made(plots.participation(results)).axes[0].images[0].get_array())
    assert shown.shape == (4, 7)
    assert 0 <= shown.min() <= shown.max() <= 1
    log = results.cells[0].log()
    assert log is not None
    rows = np.bincount(np.arange(10) * 4 // 10)
    columns = np.bincount(np.arange(30) * 7 // 30)
    assert (shown * rows[:, None] * columns).sum() == pytest.approx(log.mask().sum())


def test_realised_rates_are_shares_of_the_rounds(results: Results) -> None:
    axes = made(plots.rates(results)).axes[0]
    points = np.asarray(axes.collections[-1].get_offsets())
    log = results.cells[0].log()
    assert log is not None
    assert points[:, 1] == pytest.approx(log.mask().mean(0))
    assert sorted(points[:, 0])[:3] == [0, 0, 0.5]


def test_tenths_of_the_clients_go_from_the_rarest_to_the_most_frequent(results: Results) -> None:
    axes = made(plots.deciles(results)).axes[0]
    # Ten clients, so each is a tenth.
    expected = [
        [row["accuracy"] for row in sorted(cell.clients, key=lambda row: row["delivered"] or 0)]
        for cell in results.of("fedavg")
    ]
    shown = np.asarray(axes.lines[0].get_ydata())
    assert shown == pytest.approx(100 * np.mean(np.array(expected, float), axis=0))


def test_the_spread_over_clients_is_of_all_seeds(results: Results) -> None:
    axes = made(plots.spread(results)).axes[0]
    accuracies = [100 * (row["accuracy"] or 0) for c in results.of("fedavg") for row in c.clients]
    assert axes.lines[0].get_xdata() == pytest.approx(np.median(accuracies))
    low, high = axes.collections[0].get_paths()[0].vertices[:, 0]
    assert (low, high) == pytest.approx(tuple(np.percentile(accuracies, [5, 95])))


def test_weights_over_rounds_are_those_of_the_method_beside_1_over_p(results: Results) -> None:
    figure = made(plots.weights_over_rounds(results))
    log = results.of("fedavg")[0].log()
    assert log is not None
    axes = figure.axes[0]
    came = log.mask().sum(1)
    average, fedau, inverse = axes.lines
    # No more rounds than points, so nothing is averaged. Nobody's weight counts where nobody came.
    counts_for = np.divide(10, came, out=np.zeros(len(came)), where=came > 0)
    assert np.asarray(average.get_ydata()) == pytest.approx(counts_for)
    assert np.asarray(inverse.get_ydata()) == pytest.approx([2, 2])
    client = int(axes.get_title().split()[1].rstrip(":"))
    weights = turnout.weights(turnout.algorithms.fedau(), log.mask())[:, client]
    assert np.asarray(fedau.get_ydata()) == pytest.approx(weights)


def test_who_never_came_is_set_apart(results: Results) -> None:
    figure = made(plots.served(results))
    assert legend(figure) == ["clients that came", "clients that never came"]
    assert [text.get_text() for text in figure.axes[0].get_yticklabels()] == results.labels()


def test_weights_are_relative_to_those_that_came(results: Results) -> None:
    axes = made(plots.weights(results)).axes[0]
    points = np.concatenate([np.asarray(c.get_offsets()) for c in axes.collections[:1]])
    assert len(points) == 2 * 8  # two seeds, without the absent
    assert points[:8, 1].mean() == pytest.approx(1)


def test_memory_stays_out_of_the_plot_of_weights(tmp_path: Path) -> None:
    config = small("algorithm.0.name=mifa", "algorithm.1.name=fedvarp")
    assert plots.weights(run_experiment(config, tmp_path / "out").results) is None


def test_without_classes_there_is_loss_and_no_accuracy(quadratics: Results) -> None:
    assert made(plots.accuracy(quadratics)).axes[0].get_ylabel() == "test loss"
    assert plots.served(quadratics) is None
    assert plots.classes(quadratics) is None


def test_looks_differ_also_in_grey() -> None:
    looks = [look(place) for place in range(24)]
    assert len({(each.colour, str(each.dashes)) for each in looks}) == 24
    assert all(one.dashes != two.dashes for one, two in pairwise(looks))
