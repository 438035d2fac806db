"""From the tables [data], [participation] and [model] to worlds and models, one for each seed."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from turnout.data import (
    AUGMENTATIONS,
    Augmentation,
    Partition,
    Pool,
    Problem,
    auxiliary,
    class_mix,
    least_squares,
    mixed_in,
    partition,
    quadratics,
)
from turnout.data.load import load
from turnout.data.source import Source
from turnout.draws import generator
from turnout.errors import InputError, choose, require
from turnout.experiments.config import (
    Config,
    DataSection,
    ModelSection,
    ParticipationSection,
    PartitionSection,
)
from turnout.experiments.keys import SUPPLIED, WRAPPERS
from turnout.experiments.options import accepted, check, options
from turnout.models import MODELS, Model
from turnout.participation import PROCESSES, Participation, class_rates, excluded, lossy, sampled
from turnout.participation import given as given_mask
from turnout.world import World

PARTITIONS: dict[str, Callable[..., Partition]] = {
    build.__name__: build
    for build in (
        partition.iid,
        partition.dirichlet,
        partition.shards,
        partition.similarity,
        partition.natural,
    )
}
PROBLEMS: dict[str, Callable[..., Problem]] = {
    "quadratics": quadratics,
    "least_squares": least_squares,
}


class Given(NamedTuple):
    """Data before they are dealt to clients: the same for all seeds, if they are a data set's."""

    train: Pool
    test: Pool
    problem: Problem | None = None
    """A synthetic problem brings its own partition and model."""


class Setting(NamedTuple):
    """All that a simulation needs besides an algorithm."""

    world: World
    model: Model
    augment: Augmentation | None


def given_data(section: DataSection, seed: int) -> Given:
    """The data set, or a problem drawn by `seed`."""
    with about("data"):
        return _problem(section, seed) if section.name in PROBLEMS else _data_set(section)


class Settings:
    """The setting of each seed of the run, built when it is asked for; a data set is loaded once."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self._given: Given | None = None

    def of(self, seed: int) -> Setting:
        data = self.config.data
        if self._given is None or data.name in PROBLEMS:
            self._given = given_data(data, seed if data.seed is None else data.seed)
        return setting(self.config, seed, self._given)


def setting(config: Config, seed: int, given: Given) -> Setting:
    """World, model and augmentation of one seed of the run."""
    section = config.data
    data_seed = seed if section.seed is None else section.seed
    with about("data"):
        if section.validation is not None:
            given = _held_out(given, section.validation, data_seed)
        augment = _augmentation(section.augmentation, given.train)
        train, server, dealt = _dealt(section, given, data_seed)
        shares = _shares(section, dealt)
    comes_seed = seed if config.participation.seed is None else config.participation.seed
    with about("participation"):
        comes = _participation(config.participation, dealt, train, comes_seed, config.run.rounds)
        mixed = None if section.auxiliary is None else section.auxiliary.mixed
        # Who comes follows from the clients' own data, with data sharing as without.
        if server is not None and mixed is not None:
            train, dealt = mixed_in(train, dealt, server, mixed, data_seed)
        world = World.build(train, dealt, given.test, comes, server, shares)
    with about("model"):
        model = _model(config.model, given)
    return Setting(world, model, augment)


@contextmanager
def about(section: str) -> Iterator[None]:
    """Says of an `InputError` from inside which table of the file it is about."""
    try:
        yield
    except InputError as error:
        text = str(error)
        raise InputError(text if text.startswith(section) else f"{section}: {text}") from error


def _data_set(section: DataSection) -> Given:
    digits = section.name == "digits"
    known = {} if digits else options(Source, supplied=["repository", "summary"])
    check("data", f"data set {section.name!r}", section.options, known)
    return Given(*load(section.name, section.folder, **section.options))


def _problem(section: DataSection, seed: int) -> Given:
    build = PROBLEMS[section.name]
    known = options(build, supplied=["seed"])
    arguments = check("data", f"problem {section.name!r}", section.options, known)
    for key in ("partition", "auxiliary", "augmentation", "folder"):
        value = getattr(section, key)
        require(value is None, key, value, f"left out: {section.name!r} brings all that it has")
    if "seed" in accepted(build):
        arguments["seed"] = seed
    try:
        problem = build(**arguments)
    except InputError:
        raise
    except (TypeError, ValueError, MemoryError, OverflowError) as error:  # of numpy, about shapes
        raise InputError(f"problem {section.name!r} cannot be made: {error}") from error
    return Given(problem.pool, problem.pool, problem)


def _held_out(given: Given, size: int, seed: int) -> Given:
    """The test data stay unseen: some of the training data take their place."""
    samples = len(given.train)
    right = f"from 1 to {samples - 1}, as there are {samples} training samples"
    require(given.problem is None, "validation", size, "left out: this problem has no test data")
    require(size < samples, "validation", size, right)
    order = generator(seed, "validation set").permutation(samples)
    held, rest = np.sort(order[:size]), np.sort(order[size:])
    return given._replace(train=given.train.take(rest), test=given.train.take(held))


def _augmentation(name: str | None, train: Pool) -> Augmentation | None:
    if name is None:
        return None
    found = AUGMENTATIONS[choose("augmentation", name, AUGMENTATIONS)]
    shape = tuple(train.inputs.shape[1:])
    require(found is None or len(shape) == 3, "augmentation", name, "left out: these are no images")
    return found


def _dealt(section: DataSection, given: Given, seed: int) -> tuple[Pool, Pool | None, Partition]:
    """The clients' pool, the server's own, and who has what."""
    if given.problem is not None:
        return given.train, None, given.problem.partition
    train, server = given.train, None
    if section.auxiliary is not None:
        wanted = section.auxiliary
        train, server = auxiliary(train, wanted.size, seed, wanted.mix, wanted.shared)
    if section.partition is None:
        raise InputError(
            "partition is missing; it must be a table such as "
            '{name = "dirichlet", clients = 250, alpha = 0.1}'
        )
    return train, server, _partition(section.partition, train, seed)


def _partition(section: PartitionSection, train: Pool, seed: int) -> Partition:
    build = PARTITIONS[choose("partition", section.name, PARTITIONS)]
    known = options(build, SUPPLIED)
    chosen = check("data.partition", f"partition {section.name!r}", section.options, known)
    if build is partition.natural:
        require(section.clients is None, "partition.clients", section.clients, "left to the data")
        return partition.natural(train.owners)
    if section.clients is None:
        raise InputError(
            "data.partition.clients is missing; it must be a whole number of at least 1"
        )
    clients = section.clients
    if build is partition.iid:
        return build(len(train), clients, seed=seed, **chosen)
    require(
        train.classes is not None, "partition", section.name, "iid or natural: there are no classes"
    )
    return build(train.targets.numpy(), clients, seed=seed, **chosen)


def _shares(section: DataSection, dealt: Partition) -> NDArray[np.float64] | None:
    if section.shares == "equal":
        return None
    asked = dealt.sizes if section.shares == "samples" else section.shares
    shares: NDArray[np.float64] = np.array(asked, dtype=np.float64)
    right = f"one number above or at 0 for each of {dealt.clients} clients, with a positive sum"
    good = shares.shape == (dealt.clients,) and bool((shares >= 0).all()) and shares.sum() > 0
    require(good, "shares", section.shares, right)
    shares /= shares.sum()
    return shares


def _participation(
    section: ParticipationSection, dealt: Partition, train: Pool, seed: int, rounds: int
) -> Participation:
    name = section.process
    if name in WRAPPERS:
        raise InputError(
            f"process is {name!r}, which goes around another one; give the key {WRAPPERS[name]} beside "
            "that one's process"
        )
    names = PROCESSES.keys() - WRAPPERS.keys()
    build = PROCESSES[choose("process", name, names)]
    known, given, mix = options(build, SUPPLIED), dict(section.options), None
    if section.rates is not None or section.absent_classes is not None:
        require(train.classes is not None, "classes of the data", None, "known, for class rates")
        mix = class_mix(dealt, train.targets.numpy(), train.classes or 0)
    if section.rates is not None and mix is not None:
        require("p" not in given, "p", given.get("p"), "left out where rates are given")
        wanted = section.rates
        require("p" in known, "rates", "given", f"left out: process {name!r} takes no p")
        given["p"] = class_rates(mix, wanted.alpha, wanted.mean, wanted.floor, seed).tolist()
    if isinstance(given.get("path"), str):
        given["path"] = beside_data(given["path"])
    arguments = check("participation", f"process {name!r}", given, known)
    supplied = {"clients": dealt.clients, "seed": seed}
    process = build(**arguments, **{k: v for k, v in supplied.items() if k in accepted(build)})
    if build is given_mask:
        process.step(process.init(), rounds - 1)  # refused now if it lies beyond the mask
    if section.sampled is not None:
        process = sampled(process, section.sampled, seed)
    absent = section.absent
    if section.absent_classes is not None and mix is not None:
        require(absent is None, "absent", absent, "left out where absent_classes are given")
        absent = absent_owners(mix, section.absent_classes, section.absent_share, seed)
    if absent is not None:
        process = excluded(process, absent, seed)
    if section.lost != 0:
        loss = section.lost if isinstance(section.lost, float) else np.array(section.lost)
        process = lossy(process, loss, seed)
    return process


def beside_data(path: str) -> str:
    """A relative path that leads nowhere from here may lead somewhere from $TURNOUT_DATA."""
    base = os.environ.get("TURNOUT_DATA")
    there = Path(base or "", path).expanduser()
    return str(there) if base and not os.path.exists(path) and os.path.exists(there) else path


def absent_owners(
    mix: NDArray[np.float64], classes: int | list[int], share: float, seed: int
) -> list[int]:
    """The clients with more than `share` of their data in these classes (or so many, drawn)."""
    count = mix.shape[1]
    if isinstance(classes, int):
        right = f"from 1 to {count - 1}, as there are {count} classes"
        require(1 <= classes < count, "absent_classes", classes, right)
        chosen = generator(seed, "absent classes").permutation(count)[:classes]
    else:
        chosen = np.array(classes, dtype=np.int64)
        good = len(set(classes)) == len(classes) and all(0 <= c < count for c in classes)
        require(good, "absent_classes", classes, f"different classes from 0 to {count - 1}")
    return [int(client) for client in np.flatnonzero(mix[:, chosen].sum(1) > share)]


def _model(section: ModelSection, given: Given) -> Model:
    own = "logistic" if given.problem is None else given.problem.model
    name = section.name or own
    if given.problem is not None:
        require(name == own, "name", name, f"{own!r}, the model of this problem, or left out")
    chosen: dict[str, Any] = section.options
    if ":" not in name:
        recipe = MODELS[choose("name", name, MODELS)]
        known = options(recipe.build, supplied=["input_shape", "classes", "dim"])
        chosen = check("model", f"model {name!r}", section.options, known)
        chosen = {key: value for key, value in chosen.items() if key in section.options}
    pool = given.train
    return Model.of(name, tuple(pool.inputs.shape[1:]), pool.classes, chosen, section.loss)
