"""A real SuperLink and real SuperNodes on this machine, each a group of processes of its own."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]
_BIN = Path(sys.executable).parent


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@dataclass
class Network:
    """Processes by name: "superlink", "node 0", "node 1", …; logs and Flower's home in `folder`."""

    folder: Path
    nodes: int
    port: int = field(default_factory=free_port)
    running: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    superlink: list[str] = field(default_factory=lambda: ["--insecure"])
    """Arguments of the SuperLink, of every SuperNode, and of Flower's configuration: TLS or not."""
    supernode: list[str] = field(default_factory=lambda: ["--insecure"])
    connection: str = "insecure = true"

    @property
    def environment(self) -> dict[str, str]:
        return {
            **os.environ,
            "FLWR_HOME": str(self.folder / "home"),
            "FLWR_TELEMETRY_ENABLED": "0",
            "FLWR_DISABLE_UPDATE_CHECK": "1",
            "OMP_NUM_THREADS": "1",
            "PYTHONPATH": f"{CHECKOUT}:{CHECKOUT / 'src'}",
            "PATH": f"{_BIN}:{os.environ['PATH']}",
            "PYTHONWARNINGS": "default",
        }

    def start(self) -> None:
        home = self.folder / "home"
        home.mkdir(parents=True)
        (home / "config.toml").write_text(
            f'[superlink]\ndefault = "here"\n\n[superlink.here]\n'
            f'address = "127.0.0.1:{self.port}"\n{self.connection}\n'
        )
        self._spawn(
            "superlink",
            [
                "flower-superlink",
                *self.superlink,
                "--disable-runtime-dependency-installation",
                "--port",
                str(self.port),
            ],
        )
        self._wait_for_superlink()
        for number in range(self.nodes):
            self.start_node(number)

    def start_node(self, number: int, more: tuple[str, ...] = ()) -> None:
        self._spawn(
            f"node {number}",
            [
                "flower-supernode",
                *self.supernode,
                "--superlink",
                f"127.0.0.1:{self.port}",
                "--port",
                str(free_port()),
                *more,
                "--node-config",
                f"partition-id={number} num-partitions={self.nodes}",
            ],
        )

    def kill(self, name: str) -> None:
        """As if the plug were pulled: the process and all that it has started."""
        process = self.running.pop(name)
        for number in [process.pid, *_descendants(process.pid)]:
            with suppress(ProcessLookupError):
                os.kill(number, signal.SIGKILL)
        process.wait()

    def run(self, app: Path, **config: object) -> subprocess.Popen[bytes]:
        """`flwr run` with these settings; its output goes to run-….log."""
        pairs = " ".join(f"{k}={_toml(v)}" for k, v in config.items())
        command = ["flwr", "run", str(app), "here", "--stream", "--run-config", pairs]
        name = f"run {sum(name.startswith('run') for name in self.running)}"
        return self._spawn(name, command)

    def log(self, name: str) -> str:
        return (self.folder / f"{name.replace(' ', '-')}.log").read_text(errors="replace")

    def processes(self, name: str, word: str) -> list[int]:
        """What the process of this name has started and has this word in its command line."""
        found = []
        for number in _descendants(self.running[name].pid):
            with suppress(OSError):
                if word.encode() in Path(f"/proc/{number}/cmdline").read_bytes():
                    found.append(number)
        return found

    def stop(self) -> None:
        for name in list(self.running):
            self.kill(name)

    def _spawn(self, name: str, command: list[str]) -> subprocess.Popen[bytes]:
        with open(self.folder / f"{name.replace(' ', '-')}.log", "ab") as out:
            self.running[name] = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                env=self.environment,
                cwd=self.folder,
                start_new_session=True,
            )
        return self.running[name]

    def _wait_for_superlink(self) -> None:
        until = time.monotonic() + 60
        while time.monotonic() < until:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            assert self.running["superlink"].poll() is None, self.log("superlink")
            time.sleep(0.2)
        raise AssertionError("the SuperLink is not up after a minute: " + self.log("superlink"))


@contextmanager
def network(folder: Path, nodes: int, **more: object) -> Iterator[Network]:
    some = Network(folder, nodes, **more)  # type: ignore[arg-type]
    try:
        some.start()
        yield some
    finally:
        some.stop()


def _descendants(number: int) -> list[int]:
    """Processes that this one has started, and theirs."""
    parents = {}
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            parents[int(entry.name)] = int(
                (entry / "stat").read_text().rpartition(")")[2].split()[1]
            )
    found, ask = [], [number]
    while ask:
        parent = ask.pop()
        children = [child for child, its in parents.items() if its == parent]
        found += children
        ask += children
    return found


def _toml(value: object) -> str:
    return f"'{value}'" if isinstance(value, str | Path) else str(value).lower()
