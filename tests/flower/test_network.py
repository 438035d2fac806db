"""The same numbers once more, over a real SuperLink and SuperNodes. About a minute a test."""

from pathlib import Path

import pytest

pytest.importorskip("flwr", reason="flwr is not installed: pip install 'turnout[flower]'")

import torch
from safetensors.torch import load_file
from tests.conformance.cases import CASES, in_process, logistic
from tests.flower.network import network
from tests.flower.probe.probe import task

PROBE = Path(__file__).parent / "probe"


def check(
    cases: list[str], clients: int, folder: Path, seconds: float, secure: bool = False
) -> None:
    with network(folder, clients) as net:
        run = net.run(PROBE, cases="|".join(cases), clients=clients, out=folder, secure=secure)
        assert run.wait(timeout=seconds) == 0, net.log("run 0")
        log = net.log("run 0")
    assert (folder / "models.safetensors").exists(), log
    found = load_file(folder / "models.safetensors")
    for case in cases:
        expected = torch.stack(
            in_process(task.case(case, clients), task.world(clients), logistic(), 4)
        )
        rtol, atol = (0.0, 1e-4) if secure else (1e-9, 1e-11)  # quantised, or not
        torch.testing.assert_close(found[case], expected, rtol=rtol, atol=atol)


def test_a_real_network_gives_the_simulators_trajectory(tmp_path: Path) -> None:
    """Client-held memory, so that the clients' state on Flower's side is part of it."""
    check(["mifa, client-held"], 2, tmp_path, 560)  # on a machine that has much else to do


@pytest.mark.slow
def test_and_so_it_does_for_every_method(tmp_path: Path) -> None:
    first = {name.split(",")[0]: name for name in reversed(CASES)}
    check([*first.values(), "safari, scaffold", "mifa, client-held"], 3, tmp_path, 3000)


@pytest.mark.slow
@pytest.mark.parametrize("case", ["fedau", "mifa, client-held"])
def test_and_under_secure_aggregation_but_for_the_quantisation(tmp_path: Path, case: str) -> None:
    check([case], 4, tmp_path, 1500, secure=True)
