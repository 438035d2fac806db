"""Configurations become the worlds that they describe."""

from pathlib import Path

import numpy as np
import pytest
from tests.experiments.worlds import small

from turnout.errors import InputError
from turnout.experiments.config import Config
from turnout.experiments.world import Setting, Settings, absent_owners
from turnout.participation import class_rates


def first(config: Config) -> Setting:
    return Settings(config).of(config.run.seeds[0])


def both(config: Config) -> list[Setting]:
    found = Settings(config)
    return [found.of(seed) for seed in config.run.seeds]


def labels_of(setting: Setting, client: int) -> set[int]:
    world = setting.world
    rows = slice(int(world.offsets[client]), int(world.offsets[client + 1]))
    return set(world.train.targets[rows].tolist())


def test_each_seed_has_its_own_data_and_participation_unless_these_are_fixed() -> None:
    one, two = both(small())
    assert not np.array_equal(one.world.train.targets, two.world.train.targets)
    assert not np.array_equal(one.world.participation.mask(9), two.world.participation.mask(9))
    one, two = both(small("data.seed=5", "participation.seed=5"))
    assert np.array_equal(one.world.train.targets, two.world.train.targets)
    assert np.array_equal(one.world.participation.mask(9), two.world.participation.mask(9))


def test_the_test_set_is_the_same_for_every_seed() -> None:
    one, two = both(small())
    assert np.array_equal(one.world.test.inputs, two.world.test.inputs)


def test_rates_follow_from_the_classes_of_the_clients() -> None:
    table = "{alpha = 0.3, mean = 0.2, floor = 0.05}"
    config = small(f"participation.rates={table}")
    with pytest.raises(InputError, match=r"participation: p is 0.5; it must be left out"):
        first(config)
    markov = small("participation={process = 'markov', rates = " + table + "}")
    world = first(markov).world
    mix = np.array(
        [
            np.bincount(world.train.targets[a:b].numpy(), minlength=10)
            for a, b in zip(world.offsets, world.offsets[1:], strict=False)
        ]
    )
    assert world.participation.rates == pytest.approx(class_rates(mix, 0.3, 0.2, 0.05, seed=0))


def test_owners_of_absent_classes_never_come() -> None:
    setting = first(small("participation.absent_classes=[3, 7]"))
    rates = setting.world.participation.rates
    assert rates is not None
    for client in range(10):
        holds = bool(labels_of(setting, client) & {3, 7})
        assert rates[client] == (0 if holds else 0.5)


def test_absent_owners_by_share_and_by_number() -> None:
    mix = np.array([[0.7, 0.3, 0.0], [0.2, 0.0, 0.8], [0.0, 1.0, 0.0]])
    assert absent_owners(mix, [0], 0.0, seed=0) == [0, 1]
    assert absent_owners(mix, [0], 0.5, seed=0) == [0]
    drawn = {tuple(absent_owners(mix, 1, 0.5, seed)) for seed in range(20)}
    assert drawn == {(0,), (1,), (2,)}


def test_wrappers_go_around_the_process_in_the_order_that_keeps_m() -> None:
    setting = first(
        small("participation={process = 'uniform', per_round = 4, absent = 5, lost = 1.0}")
    )
    process = setting.world.participation
    assert process.mask(20, cohort=True).sum(1).tolist() == [4] * 20
    assert not process.mask(20).any()


def test_sampled_asks_some_of_those_available() -> None:
    process = first(small("participation={process = 'always', sampled = 3}")).world.participation
    assert process.mask(8).sum(1).tolist() == [3] * 8


def test_auxiliary_data_are_taken_from_the_clients() -> None:
    with_server, without = first(small()).world, first(small('data.auxiliary="none"')).world
    assert with_server.server is not None
    assert without.server is None
    assert len(with_server.server) == 40
    assert len(with_server.train) <= len(without.train) - 40 + 20  # shards may leave a remainder


def test_a_shifted_auxiliary_set_has_the_mix_that_was_asked_for() -> None:
    mix = "[1.0, 1.0, 0, 0, 0, 0, 0, 0, 0, 0]"
    server = first(small(f"data.auxiliary.mix={mix}")).world.server
    assert server is not None
    assert np.bincount(server.targets.numpy()).tolist() == [20, 20]


def test_shares_weigh_clients_by_their_samples_or_as_given() -> None:
    dirichlet = "data.partition={name = 'dirichlet', clients = 4, alpha = 1.0}"
    world = first(small(dirichlet, "data.shares=samples")).world
    assert world.shares == pytest.approx(np.diff(world.offsets) / len(world.train))
    world = first(small(dirichlet, "data.shares=[1, 1, 2, 0]")).world
    assert world.shares == pytest.approx([0.25, 0.25, 0.5, 0])


def test_a_problem_brings_data_partition_and_model() -> None:
    config = small(
        "data={name = 'quadratics', z = [[0.0], [4.0]]}",
        "participation={process = 'always'}",
        "model.start=[1.0]",
    )
    setting = first(config)
    assert setting.world.clients == 2
    assert not setting.model.classification
    assert [p.tolist() for p in setting.model.module.parameters()] == [[1.0]]


def test_augmentation_by_name() -> None:
    augment = first(small("data.augmentation=crop")).augment
    assert augment is not None
    assert not augment.flip


def test_the_model_is_built_for_the_data() -> None:
    model = first(small("model.name=perceptron", "model.hidden=[7, 5]")).model
    assert [tuple(p.shape) for p in model.module.parameters()] == [
        (7, 64), (7,), (5, 7), (5,), (10, 5), (10,)
    ]  # fmt: skip


def test_a_trace_has_the_population_of_the_partition(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("client,available_from_s,available_until_s\n0,0,60\n3,60,120\n")
    process = first(
        small(f"participation={{process = 'trace', path = '{path}', round_s = 60}}")
    ).world.participation
    assert process.clients == 10
    assert np.argwhere(process.mask(2)).tolist() == [[0, 0], [1, 3]]


def test_validation_data_come_from_the_training_data_and_take_the_tests_place() -> None:
    whole, held = first(small()).world, first(small("data.validation=100")).world
    assert len(held.test) == 100
    assert len(held.train) <= len(whole.train) - 100 + 20  # shards may leave a remainder
    trained = {row.tobytes() for row in held.train.inputs.numpy()}
    tested = {row.tobytes() for row in whole.test.inputs.numpy()}
    for row in held.test.inputs.numpy():
        assert row.tobytes() not in tested
        assert row.tobytes() not in trained


def test_validation_data_are_not_all_there_is() -> None:
    with pytest.raises(InputError, match=r"data: validation is 2000; it must be from 1 to 1437"):
        first(small("data.validation=2000"))
    with pytest.raises(InputError, match="validation is 1; it must be left out: this problem"):
        first(small('data={name = "quadratics", z = [[0.0], [1.0]], validation = 1}'))


def test_a_trace_may_lie_beside_the_data_sets(tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "log.csv").write_text("client,available_from_s,available_until_s\n0,0,60\n9,0,60\n")
    changes = "participation={process = 'trace', path = 'log.csv', round_s = 60}"
    with pytest.raises(InputError, match=r"log\.csv cannot be read"):
        first(small(changes))
    monkeypatch.setenv("TURNOUT_DATA", str(tmp_path))
    assert first(small(changes)).world.participation.clients == 10


def test_data_sharing_changes_what_clients_hold_and_not_who_comes() -> None:
    rates = "participation={process = 'bernoulli', rates = {alpha = 0.3, mean = 0.2}}"
    plain = first(small(rates)).world
    mixed = first(small(rates, "data.auxiliary={size = 40, mixed = 0.5}")).world
    assert (np.diff(mixed.offsets) - np.diff(plain.offsets)).tolist() == [20] * 10
    assert np.array_equal(mixed.participation.mask(20), plain.participation.mask(20))
    with pytest.raises(InputError, match=r"data.auxiliary.mixed is 2; it must be"):
        small("data.auxiliary={size = 40, mixed = 2}")
