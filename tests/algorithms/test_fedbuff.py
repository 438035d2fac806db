"""FedBuff: events one after the other in plain Python, what lateness costs, and runs that are stopped."""

from dataclasses import replace
from heapq import heappop, heappush
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.algorithms.naive import moved, trace
from tests.conformance.cases import ENGINES, LOCAL, classification, logistic
from tests.conformance.test_resume import same
from tests.conformance.worlds import HALF, path, point, quadratic, walk

from turnout import Model, World, checkpoint, simulate
from turnout.algorithms import (
    f3ast,
    fedau,
    fedavg,
    fedawe,
    fedbuff,
    mifa,
    safari,
    scaffold,
)
from turnout.algorithms.fedbuff import polynomial
from turnout.errors import InputError
from turnout.participation import Participation, arrivals, excluded, lossy, sampled
from turnout.parts.local import Halve, Local
from turnout.round import absorb, announce, client_step, close, sent, start
from turnout.simulator import Cadence, Federation, Simulation, advance, begin, play, restore
from turnout.together import Together

Job = tuple[int, float, float]


def log(folder: Path, jobs: list[Job]) -> Path:
    file = folder / "log.csv"
    file.write_text("client,started_s,took_s\n" + "".join(f"{c},{s!r},{t!r}\n" for c, s, t in jobs))
    return file


def at_their_own_pace(folder: Path, jobs: list[Job], z) -> World:
    return replace(quadratic(z, [[0] * len(z)]), participation=arrivals(log(folder, jobs), len(z)))


def some_jobs(seed: int, clients: int = 6, each: int = 9) -> list[Job]:
    draw = np.random.default_rng(seed)
    jobs = []
    for client in range(clients):
        now, pace = draw.uniform(0, 5), draw.uniform(0.5, 6)
        for _ in range(each):
            took = pace * draw.uniform(0.5, 1.5)
            jobs.append((client, float(now), float(took)))
            now += took + draw.choice([0, 0, 2.0])
    return [jobs[k] for k in draw.permutation(len(jobs))]


def test_by_hand(tmp_path) -> None:
    # Clients at 0 and 4 go half the way from what they were sent; two updates fill the buffer.
    # 0: 0 to 1 s, 1 to 2, 2 to 3;  1: 0.5 to 2.5 s.  From 8:
    # at 1 client 0 has −4; at 2 client 0, sent 8, has −4: 8 − 4 = 4;
    # at 2.5 client 1, sent 8, has −2, one version late: −2/2; at 3 client 0, sent 4, has −2: 4 − 3/2
    jobs = [(0, 0, 1), (0, 1, 1), (1, 0.5, 2), (0, 2, 1)]
    world = at_their_own_pace(tmp_path, jobs, [0, 4])
    method = fedbuff(2, power=1.0, local=HALF)
    assert path(method, world, 4, 8.0)[:, 0].tolist() == [8, 4, 4, 2.5]


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(("K", "a"), [(1, 0.5), (3, 0.5), (4, 0.0), (2, 2.0)])
def test_events_one_after_the_other(tmp_path, seed, K, a) -> None:
    jobs = some_jobs(seed)
    z, lr, steps, eta = np.random.default_rng(seed).normal(size=6) * 3, 0.1, 3, 0.8
    events: list[tuple[float, int, int, Job]] = []
    for job in jobs:
        heappush(events, (job[1], 1, job[0], job))  # arrivals first, where both are due
        heappush(events, (job[1] + job[2], 0, job[0], job))
    x, version, buffer, working, expected = 3.0, 0, [], {}, []
    while events:
        _, starts, client, job = heappop(events)
        if starts:
            working[client] = x, version
            continue
        x0, then = working.pop(client)
        buffer.append(moved(x0, z[client], lr, steps) / (1 + version - then) ** a)
        if len(buffer) == K:
            x, version, buffer = x + eta * sum(buffer) / K, version + 1, []
        expected.append(x)
    method = fedbuff(K, a, eta, Local(lr, steps, None, None))
    found = path(method, at_their_own_pace(tmp_path, jobs, z), len(jobs), 3.0)[:, 0]
    np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_in_rounds_in_which_enough_come_it_is_fedavg() -> None:
    z, mask = trace(0)
    mask = mask[mask.sum(1) >= 2]
    found = walk(fedbuff(2, local=HALF), z, mask, 3.0)
    assert found == walk(fedavg(local=HALF), z, mask, 3.0)


def test_in_rounds_the_buffer_fills_over_several_of_them() -> None:
    # 0 and 4 from 8, three updates: −4; −4 and −2 → 8 − 10/3. The first is not late: nothing moved.
    found = walk(fedbuff(3, local=HALF), [0, 4], [[1, 0], [0, 0], [1, 1], [0, 1]], 8)
    assert found == pytest.approx([8, 8, 8 - 10 / 3, 8 - 10 / 3])


def test_a_late_answer_of_a_live_client_counts_for_less() -> None:
    """As the Flower driver goes about it: sent in one round, taken in in another."""
    method = fedbuff(1, power=1.0, local=HALF)
    state = start(method, torch.tensor([8.0]), 3)
    state = sent(state, np.array([0, 1]))

    def upload(row: int):
        return client_step(method, announce(method, state, np.array([row])), Still(), {})[0]

    late, in_time = upload(0), upload(1)
    state = close(method, absorb(method, state, np.array([1]), in_time))
    assert state.x.item() == 8 - 1
    state = close(method, absorb(method, state, np.array([0]), late))
    assert state.x.item() == 8 - 1 - 0.5


class Still:
    """One step along a gradient of 2, wherever it is."""

    steps = (1,)

    def gradient(self, x, step):
        return torch.full_like(x, 2.0)


def test_a_step_size_is_that_of_the_round_in_which_a_client_began(tmp_path) -> None:
    jobs = [(0, 0, 3), (1, 0, 1), (1, 1, 1)]
    world = at_their_own_pace(tmp_path, jobs, [0, 8])
    method = fedbuff(1, 0.0, local=Local(Halve(0.5, every=1), 1, None, None))
    # client 1: 0 from 8; then half of that γ from 8: 0; client 0 from 8 at ½: −4
    assert path(method, world, 3, 8.0)[:, 0].tolist() == [8, 8, 4]


def world_of(folder: Path) -> World:
    jobs = [(client % 6, start, took) for client, start, took in some_jobs(3)]
    return replace(classification(), participation=arrivals(log(folder, jobs)))


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    "build", [fedbuff, fedau, mifa, lambda local: mifa(memory="client", local=local)]
)
def test_every_engine_trains_the_same(tmp_path, engine, build) -> None:
    runs = []
    for name in ("reference", engine):
        of = (build(local=LOCAL), world_of(tmp_path), logistic())
        simulation = Simulation.of(*of, engine=name, dtype=torch.float64)
        progress, models = begin(simulation), []
        for _ in range(40):
            advance(simulation, progress)
            models.append(progress.server.x)
        runs.append(torch.stack(models))
    torch.testing.assert_close(runs[1], runs[0], rtol=1e-9, atol=1e-11)
    assert len(runs[0].unique(dim=0)) > 3


@pytest.mark.parametrize("stop", [1, 7, 13])
def test_a_resumed_run_is_the_whole_run_though_clients_are_at_work(tmp_path, stop) -> None:
    def fresh() -> Simulation:
        return Simulation.of(fedbuff(4, local=LOCAL), world_of(tmp_path), logistic())

    def play(simulation, progress, rounds):
        for _ in range(rounds):
            advance(simulation, progress)
        return progress

    whole, first, second = fresh(), fresh(), fresh()
    half = play(first, begin(first), stop)
    checkpoint.save(tmp_path, stop, half, delivered=half.delivered)
    found = checkpoint.load(tmp_path)
    assert found is not None
    same(play(second, restore(second, found.tree), 20 - stop), play(whole, begin(whole), 20))


def test_several_seeds_trained_together_are_each_alone(tmp_path) -> None:
    def federations() -> list[Federation]:
        found = []
        for seed in (0, 1, 2):
            of = (fedbuff(3, local=LOCAL), world_of(tmp_path), logistic(), seed, "batched")
            simulation = Simulation.of(*of, torch.float64)
            cadence = Cadence(10, 10, 40)
            evaluator = simulation.evaluator()
            found.append(Federation(simulation, begin(simulation), cadence, evaluator))
        return found

    joint, alone = federations(), federations()
    train = Together(joint)
    while any(federation.going for federation in joint):
        play(joint, train=train)
    for federation in alone:
        play([federation])
    for one, other in zip(joint, alone, strict=True):
        torch.testing.assert_close(one.x, other.x, rtol=1e-9, atol=1e-11)
    assert not torch.equal(joint[0].x, joint[1].x)


def test_who_is_late_counts_for_less_in_the_table_of_clients(tmp_path) -> None:
    jobs = [(0, 0.0, 10.0), *((1, float(t), 1.0) for t in range(9))]
    world = at_their_own_pace(tmp_path, jobs, [0, 4])
    run = simulate(fedbuff(1, 1.0, local=HALF), world, point(), 10)
    one, other = (client["effective_weight"] for client in run.clients)
    assert (one, other) == pytest.approx((2 / 10 / 10, 2 * 9 / 10))


def test_updates_that_get_lost_never_were(tmp_path) -> None:
    world = at_their_own_pace(tmp_path, some_jobs(2), np.arange(6.0))
    alone = excluded(world.participation, [0])
    lost = lossy(world.participation, [1.0, 0, 0, 0, 0, 0])
    paths = [
        path(fedbuff(2, local=HALF), replace(world, participation=process), 54, 9.0)
        for process in (alone, lost)
    ]
    np.testing.assert_array_equal(paths[0], paths[1])


@pytest.mark.parametrize(
    ("method", "why"),
    [
        (scaffold(), "its clients share vectors"),
        (fedawe(), "it keeps itself from where each client goes on"),
        (f3ast(), "it chooses whom to ask"),
        (safari(), "the server trains in a round"),
    ],
)
def test_methods_that_go_by_rounds_say_so(tmp_path, method, why) -> None:
    world = at_their_own_pace(tmp_path, [(0, 0, 1)], [0, 4])
    with pytest.raises(
        InputError, match=f"participation is arrivals, .*{method.name} does not .*{why}"
    ):
        simulate(method, world, Model.of("point", (1,)), 1)


def test_nobody_is_sampled_among_arrivals(tmp_path) -> None:
    process: Participation = arrivals(log(tmp_path, [(0, 0, 1)]))
    with pytest.raises(InputError, match="inner is 'arrivals'; it must be a process of rounds"):
        sampled(process, 1)


@pytest.mark.parametrize(
    "wrong", [{"buffer": 0}, {"buffer": 2.5}, {"power": -1}, {"power": np.inf}]
)
def test_bad_settings(wrong) -> None:
    with pytest.raises(InputError, match=next(iter(wrong))):
        fedbuff(**wrong)


def test_lateness() -> None:
    assert polynomial(0.0)(np.array([0, 5])).tolist() == [1, 1]
    assert polynomial(1.0)(np.array([0, 1, 3])).tolist() == [1, 0.5, 0.25]
