"""The fault table: what goes wrong is done to real processes. Minutes each; `make test-slow`.

With TURNOUT_FAULT_TABLE set to a file's name, each test adds its line of docs/flower.md's table.
"""

import os
import signal
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("flwr", reason="flwr is not installed: pip install 'turnout[flower]'")

import torch
from tests.conformance.cases import CASES, in_process, logistic
from tests.conformance.worlds import attendance
from tests.flower.network import Network, network
from tests.flower.probe.probe import task

from turnout import checkpoint
from turnout.participation import Log, load

pytestmark = pytest.mark.slow

PROBE = Path(__file__).parent / "probe"
CLIENTS, ROUNDS, DEADLINE = 4, 5, 60.0
STARTUP = 150.0
"""Processes, greetings and a last poll; most of it is importing torch on a busy machine."""


@pytest.fixture(scope="module")
def net(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Network]:
    with network(tmp_path_factory.mktemp("network"), CLIENTS) as some:
        yield some


class Run:
    """One `flwr run` of the probe, and what is left of it."""

    def __init__(self, net: Network, folder: Path, faults: str = "", case: str = "fedau") -> None:
        self.net, self.folder, self.case, self.faults = net, folder, case, faults
        self.began = time.monotonic()
        self.launch()

    def launch(self) -> None:
        self.process = self.net.run(
            PROBE,
            cases=self.case,
            clients=CLIENTS,
            rounds=ROUNDS,
            deadline=DEADLINE,
            masked=False,
            faults=self.faults,
            out=self.folder,
        )

    def wait_for_round(self, done: int) -> None:
        """Until so many rounds are in the log."""
        until = time.monotonic() + STARTUP + done * DEADLINE
        while time.monotonic() < until:
            log = self.folder / "participation.csv"
            if log.exists() and f"# rounds={done} " in log.read_text():
                return
            time.sleep(0.2)
        raise AssertionError(f"round {done} is not over:\n{self.output()}")

    def output(self) -> str:
        return "".join(f.read_text() for f in sorted(self.net.folder.glob("run-*.log")))

    def end(self) -> Log:
        """Wait for it, and check what must hold whatever has happened."""
        self.process.wait(timeout=STARTUP + ROUNDS * DEADLINE)
        self.seconds = time.monotonic() - self.began
        self.log = load(self.folder / "participation.csv")  # refuses a client twice in a round
        assert self.log.rounds == ROUNDS, self.output()
        assert self.seconds <= ROUNDS * DEADLINE + STARTUP
        saved = checkpoint.load(self.folder / "checkpoints")
        assert saved is not None
        mask = attendance(self.log.mask(), self.log.mask(cohort=True))
        world = replace(task.world(CLIENTS), participation=mask)
        expected = in_process(CASES[self.case], world, logistic(), ROUNDS)[-1]
        torch.testing.assert_close(saved.tree["server"]["x"], expected, rtol=1e-9, atol=1e-11)
        return self.log

    def outcome(self, round: int, client: int) -> str:
        for line in (self.folder / "participation.csv").read_text().splitlines():
            if line.startswith(f"{round},{client},"):
                return line.split(",", 6)[6].strip('"')
        return "not asked"

    def tell(self, fault: str, happened: str) -> None:
        table = os.environ.get("TURNOUT_FAULT_TABLE")
        if table:
            bound = ROUNDS * DEADLINE
            line = f"| {fault} | {happened} | {ROUNDS} of {ROUNDS} | {self.seconds:.0f} | {bound:.0f} |\n"
            with open(table, "a", encoding="utf-8") as file:
                file.write(line)


def test_no_fault(net: Network, tmp_path: Path) -> None:
    run = Run(net, tmp_path)
    assert run.end().mask().all()
    run.tell("none", "all deliver in every round")


def test_a_client_raises(net: Network, tmp_path: Path) -> None:
    run = Run(net, tmp_path, "1@2=raises")
    mask = run.end().mask()
    assert (~mask).sum() == 1
    assert "RuntimeError" in run.outcome(1, 1) or "raised" in run.outcome(1, 1)
    run.tell("client 1 raises in round 2", f"round 2 goes on without it: “{run.outcome(1, 1)}”")


def test_a_client_sends_nan(net: Network, tmp_path: Path) -> None:
    run = Run(net, tmp_path, "2@3=nan")
    mask = run.end().mask()
    assert (~mask).sum() == 1
    assert run.outcome(2, 2) == "update with NaN"
    run.tell("client 2 sends NaN in round 3", f"refused: “{run.outcome(2, 2)}”")


def test_a_client_hangs_for_a_round_and_a_half(net: Network, tmp_path: Path) -> None:
    run = Run(net, tmp_path, f"3@2=sleeps:{1.5 * DEADLINE}")
    mask = run.end().mask()
    assert not mask[1, 3]
    assert mask[:, :3].all()
    assert mask[-1, 3], "it is back when it has woken"
    run.tell(
        f"client 3 hangs in round 2, for {1.5 * DEADLINE:.0f} s",
        f"round 2 ends at its deadline: “{run.outcome(1, 3)}”; "
        f"from round {first(mask[2:, 3]) + 3} on it delivers again",
    )


def test_a_supernode_is_killed_in_mid_round_and_comes_back(net: Network, tmp_path: Path) -> None:
    run = Run(net, tmp_path, "0@2=sleeps:30")
    run.wait_for_round(1)
    time.sleep(5)  # its order for round 2 is out
    net.kill("node 0")
    run.wait_for_round(2)
    net.start_node(0)
    mask = run.end().mask()
    assert mask[0].all()
    assert not mask[1, 0]
    assert mask[:, 1:].all()
    back = first(mask[2:, 0])
    run.tell(
        "SuperNode 0 killed with -9 in mid-round 2, started again after it",
        f"round 2 ends without it: “{run.outcome(1, 0)}”; at a new node id it is the same client, "
        f"and delivers from round {back + 3} on",
    )
    assert mask[-1, 0]


def test_the_serverapp_is_killed_and_started_again(net: Network, tmp_path: Path) -> None:
    run = Run(net, tmp_path, "1@3=sleeps:8")
    run.wait_for_round(2)
    (server,) = net.processes("superlink", "flwr-serverapp")
    os.kill(server, signal.SIGKILL)
    run.process.wait(timeout=STARTUP)
    assert load(tmp_path / "participation.csv").rounds == 2
    run.launch()
    assert run.end().mask().all()
    assert "Going on after round 2" in run.output()
    run.tell(
        "ServerApp killed with -9 in mid-round 3, `flwr run` again",
        "goes on at round 3 with weights, model and log intact; no round is in the log twice",
    )


def first(flags) -> int:
    assert flags.any(), "it never came back"
    return int(flags.argmax())
