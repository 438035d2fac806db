"""The simulator: who computes, what is measured when, how it ends, and that a seed is a run."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from tests.conformance.cases import ASKED, CASES, DELIVERED, classification, logistic
from tests.conformance.worlds import HALF, point, quadratic

import turnout
from turnout import algorithms as a
from turnout.engine import choose_engine
from turnout.errors import InputError
from turnout.parts.local import Local
from turnout.runs import simulate
from turnout.simulator import DivergenceError, Simulation, advance, begin, restore

TRACE = [[1, 1], [1, 0], [0, 0], [0, 1]]
WORLD = quadratic([0, 4], TRACE)


def run(algorithm=None, world=WORLD, rounds=4, start=8.0, **more):
    algorithm = a.fedavg(local=HALF) if algorithm is None else algorithm
    x = torch.tensor([start], dtype=torch.float64)
    settings = {"evaluate_every": 1, "dtype": torch.float64, "start": x, "engine": "reference"}
    return simulate(algorithm, world, point(), rounds, **{**settings, **more})


def test_a_run_by_hand() -> None:
    # 8 → 5 → 2.5 → 2.5 → 3.25; losses of clients at 0 and 4 are ½x² and ½(x − 4)².
    found = run()
    path = [5, 2.5, 2.5, 3.25]
    losses = [np.mean([x**2 / 2, (x - 4) ** 2 / 2]) for x in path]
    assert found.curve("train_loss") == ([1, 2, 3, 4], pytest.approx(losses))
    assert found.curve("test_loss")[1] == pytest.approx(losses)
    assert [entry["delivered"] for entry in found.history] == [2, 1, 0, 1]
    assert [entry["weight_mean"] for entry in found.history] == [1, 1, None, 1]
    assert {entry["by"] for entry in found.history} == {"clients"}
    assert found.x.item() == 3.25
    assert found.module.x.item() == 3.25
    assert found.diverged is None
    assert found.seconds > 0
    json.dumps(found.history, allow_nan=False)
    json.dumps(list(found.clients), allow_nan=False)


def test_final_best_and_tail() -> None:
    found = run(rounds=4)
    losses = found.curve("train_loss")[1]
    assert found.final("train_loss") == losses[-1]
    assert found.best("train_loss") == max(losses)
    assert found.tail(2, "train_loss") == pytest.approx(np.mean(losses[2:]))
    assert found.tail(100, "train_loss") == pytest.approx(np.mean(losses))
    sparse = run(rounds=10, evaluate_every=3, world=quadratic([0, 4], [[1, 1]]))
    values = dict(zip(*sparse.curve("train_loss"), strict=True))
    assert list(values) == [3, 6, 9, 10]
    assert sparse.tail(4, "train_loss") == pytest.approx(np.mean([values[9], values[10]]))


def test_a_table_of_clients() -> None:
    world = quadratic([0, [4, 5]], TRACE)
    rows = run(a.known([0.5, 0.25], local=HALF), world).clients
    assert [row["client"] for row in rows] == [0, 1]
    assert [row["samples"] for row in rows] == [1, 2]
    assert [row["delivered"] for row in rows] == [2, 2]
    assert [row["rate"] for row in rows] == [None, None]
    assert [row["effective_weight"] for row in rows] == [2 * 2 / 4, 2 * 4 / 4]
    plain = run(a.fedavg(local=HALF), world).clients
    assert [row["effective_weight"] for row in plain] == [(1 + 2) / 4, (1 + 2) / 4]


def test_rates_come_from_the_world() -> None:
    world = replace(WORLD, participation=turnout.participation.always(2))
    assert [row["rate"] for row in run(world=world).clients] == [1, 1]


@pytest.mark.parametrize("method", ["mifa", "mifa, client-held", "scaffold", "fedvarp", "fedau"])
def test_the_librarys_own_processes_serve_every_memory(method) -> None:
    """Read-only arrays of rows, for one, would make torch warn."""
    algorithm = replace(CASES[method], local=HALF, name="any")
    if method == "scaffold":
        algorithm = a.scaffold(local=HALF)
    found = run(algorithm, replace(WORLD, participation=turnout.participation.always(2)))
    assert found.x.item() == pytest.approx(2 + 6 / 16)


def test_cadence() -> None:
    found = run(rounds=7, evaluate_every=3, clients_every=2, world=quadratic([0, 4], [[1, 1]]))
    assert found.curve("test_loss")[0] == [3, 6, 7]
    assert found.curve("train_loss")[0] == [2, 4, 6, 7]
    assert run(rounds=7, evaluate_every=3, world=quadratic([0, 4], [[1, 1]])).curve("train_loss")[
        0
    ] == [3, 6, 7]


def test_a_watcher_sees_every_round() -> None:
    seen = []
    run(evaluate_every=2, watch=lambda happened, metrics: seen.append((happened, metrics)))
    assert [happened.round for happened, _ in seen] == [0, 1, 2, 3]
    assert [happened.delivered.tolist() for happened, _ in seen] == [[0, 1], [0], [], [1]]
    assert [None if m is None else m["round"] for _, m in seen] == [None, 2, None, 4]


def test_lost_updates_are_reported_as_asked() -> None:
    world = quadratic([0, 4], TRACE, asked=[[1, 1]] * 4)
    seen = []
    found = run(world=world, watch=lambda happened, metrics: seen.append(happened))
    assert [happened.cohort.tolist() for happened in seen] == [[0, 1]] * 4
    assert [entry["cohort"] for entry in found.history] == [2] * 4
    assert [entry["delivered"] for entry in found.history] == [2, 1, 0, 1]


def test_server_rounds_ask_nobody() -> None:
    world = quadratic([0, 4], [[1, 1]], server=[6])
    found = run(a.safari(0.5, inner=a.fedavg(local=HALF)), world, rounds=12)
    kinds = {entry["by"] for entry in found.history}
    assert kinds == {"clients", "server"}
    for entry in found.history:
        assert (entry["cohort"] == entry["delivered"] == 2) == (entry["by"] == "clients")
    played = sum(entry["by"] == "clients" for entry in found.history)
    assert [row["delivered"] for row in found.clients] == [played] * 2
    assert [row["effective_weight"] for row in found.clients] == [1, 1]


def test_participation_goes_on_while_the_server_trains() -> None:
    """Time passes for everybody: round 2 has the attendance of round 2, whoever trained before."""
    method = a.safari(0.5, inner=a.fedavg(local=HALF))
    trace = np.eye(6, dtype=bool)
    seen = []
    run(
        method,
        quadratic(range(6), trace, server=[6]),
        rounds=6,
        watch=lambda happened, metrics: seen.append(happened),
    )
    came = {h.round: h.delivered.tolist() for h in seen if h.by == "clients"}
    assert 0 < len(came) < 6
    assert came == {t: [t] for t in came}


def test_a_diverging_run_says_where_and_keeps_what_it_had() -> None:
    method = a.fedavg(local=Local(1e60, 1, None, None))  # ·(1 − 1e60) a round: beyond 1e308 in 6
    found = run(method, quadratic([0, 4], [[1, 1]]), rounds=20)
    assert isinstance(found.diverged, DivergenceError)
    assert (found.diverged.algorithm, found.diverged.round) == ("fedavg", 5)
    assert str(found.diverged) == ("fedavg diverged in round 5: the model is no longer finite")
    assert [entry["round"] for entry in found.history] == [1, 2, 3, 4, 5]
    assert np.isfinite(found.x.item())
    assert found.module.x.item() == found.x.item()
    assert len(found.clients) == 2


def test_a_server_that_diverges() -> None:
    method = a.server_only(assistance_lr=1e60)
    found = run(method, quadratic([0, 4], [[1, 1]], server=[6]), rounds=20)
    assert found.diverged is not None
    assert found.diverged.algorithm == "server_only"


def test_a_seed_is_a_run() -> None:
    def bits(seed: int, **more) -> bytes:
        settings = {"evaluate_every": 50, **more}
        world = classification(asked=ASKED)
        found = simulate(CASES["safari, fedau"], world, logistic(), 5, seed=seed, **settings)
        return found.x.numpy().tobytes()

    assert bits(0) == bits(0)
    assert bits(0) != bits(1)
    # What is looked at in between changes nothing.
    assert bits(0) == bits(0, evaluate_every=1, client_samples=1, watch=lambda happened, m: None)


def test_the_model_that_was_given_is_left_alone() -> None:
    model = logistic()
    before = [p.detach().clone() for p in model.module.parameters()]
    found = simulate(CASES["fedavg"], classification(), model, 3, dtype=torch.float64)
    assert all(torch.equal(p, q) for p, q in zip(model.module.parameters(), before, strict=True))
    assert next(model.module.parameters()).dtype == torch.float32
    assert next(found.module.parameters()).dtype == torch.float64


def test_the_start_is_the_seeds_or_the_callers() -> None:
    simulation = Simulation.of(CASES["fedavg"], classification(), logistic(), seed=3)
    first = begin(simulation).server.x
    assert torch.equal(first, begin(simulation).server.x)
    other = Simulation.of(CASES["fedavg"], classification(), logistic(), seed=4)
    assert not torch.equal(first, begin(other).server.x)
    mine = torch.full_like(first, 0.5)
    progress = begin(simulation, mine)
    advance(simulation, progress)
    assert bool((mine == 0.5).all())
    with pytest.raises(InputError, match=r"^shape of the start is \(2,\); it must be \(15,\)"):
        begin(simulation, torch.zeros(2))


def test_weighted_objectives_reach_their_own_optimum() -> None:
    q = np.array([0.2, 0.3, 0.5])
    world = quadratic([0.0, 4.0, 10.0], [[1, 1, 1]], shares=q)
    for method in (a.fedavg, a.average_all, a.fedau, a.mifa, a.fedvarp, a.scaffold):
        found = run(method(local=HALF), world, rounds=80, evaluate_every=80)
        assert found.x.item() == pytest.approx(q @ [0, 4, 10], abs=1e-9), method.__name__


def test_kept_vectors_are_committed_on_delivery_only() -> None:
    simulation = Simulation.of(
        CASES["scaffold"], classification(asked=ASKED), logistic(), dtype=torch.float64
    )
    progress = begin(simulation)
    for t in range(len(DELIVERED)):
        before = progress.kept["control"].clone()
        advance(simulation, progress)
        changed = (progress.kept["control"] != before).any(1).numpy()
        np.testing.assert_array_equal(changed, DELIVERED[t])


@pytest.mark.parametrize(
    ("field", "settings"),
    [
        ("rounds", {"rounds": 0}),
        ("evaluate_every", {"evaluate_every": 0}),
        ("clients_every", {"clients_every": -1}),
        ("client_samples", {"client_samples": 0}),
    ],
)
def test_bad_settings(field, settings) -> None:
    with pytest.raises(InputError, match=f"^{field} is .*; it must be "):
        run(**settings)


def test_an_unknown_engine() -> None:
    with pytest.raises(
        InputError, match="engine 'refrence' is not known; did you mean 'reference'"
    ):
        run(engine="refrence")
    training = Simulation.of(CASES["fedavg"], classification(), logistic()).training
    assert choose_engine("auto", training) is not None


def test_a_checkpoint_of_another_federation_is_refused() -> None:
    simulation = Simulation.of(CASES["scaffold"], classification(), logistic())
    other = begin(Simulation.of(CASES["fedavg"], classification(), logistic()))
    tree = {**vars(other), "server": vars(other.server)}
    with pytest.raises(InputError, match="kept vectors"):
        restore(simulation, tree)
