"""Chromium without a window, spoken to through a pipe: what a page loads, shows and complains of."""

import itertools
import json
import os
import select
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")

_FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe")
_ANSWER_SECONDS = 60


@dataclass
class Browser:
    """One tab. `faults` collects what failed to load, what was fetched from elsewhere, and errors."""

    write: int
    read: int
    faults: list[str] = field(default_factory=list)
    loaded: int = 0
    _numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))
    _rest: bytes = b""
    _session: str | None = None

    def attach(self) -> None:
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        found = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = found["sessionId"]
        for domain in ("Page", "Network", "Runtime", "Log"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        number = next(self._numbers)
        message = {"id": number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self.write, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + _ANSWER_SECONDS
        while True:
            answer = self._next(deadline)
            assert answer is not None, f"Chromium does not answer {method}"
            if answer.get("id") == number:
                assert "error" not in answer, answer
                return answer["result"]

    def open(self, url: str) -> None:
        before = self.loaded
        self.call("Page.navigate", url=url)
        deadline = time.monotonic() + _ANSWER_SECONDS
        while self.loaded == before:
            assert self._next(deadline) is not None, f"{url} does not finish loading"

    def ask(self, expression: str) -> Any:
        """The value of a JavaScript expression."""
        found = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def until(self, expression: str) -> None:
        deadline = time.monotonic() + _ANSWER_SECONDS
        while not self.ask(expression):
            assert time.monotonic() < deadline, f"in vain: {expression}"
            time.sleep(0.05)

    def width(self, pixels: int, phone: bool) -> None:
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=pixels,
            height=844,
            deviceScaleFactor=1,
            mobile=phone,
        )

    def _next(self, deadline: float) -> dict[str, Any] | None:
        while b"\0" not in self._rest:
            ready, _, _ = select.select([self.read], [], [], max(0, deadline - time.monotonic()))
            if not ready:
                return None
            self._rest += os.read(self.read, 1 << 16)
        line, _, self._rest = self._rest.partition(b"\0")
        message: dict[str, Any] = json.loads(line)
        self._note(message.get("method", ""), message.get("params", {}))
        return message

    def _note(self, event: str, about: dict[str, Any]) -> None:
        if event == "Page.loadEventFired":
            self.loaded += 1
        elif event == "Network.requestWillBeSent":
            url = about["request"]["url"]
            if not url.startswith(("file:", "data:", "blob:", "http://127.0.0.1", "about:")):
                self.faults.append(f"fetched from elsewhere: {url}")
        elif event == "Network.responseReceived" and about["response"]["status"] >= 400:
            self.faults.append(f"{about['response']['status']}: {about['response']['url']}")
        elif event == "Network.loadingFailed" and not about.get("canceled"):
            self.faults.append(f"failed to load: {about['errorText']}")
        elif event == "Runtime.exceptionThrown":
            self.faults.append(f"exception: {about['exceptionDetails']['text']}")
        elif event == "Log.entryAdded" and about["entry"]["level"] == "error":
            self.faults.append(f"{about['entry']['text']} {about['entry'].get('url', '')}")


@contextmanager
def browser(profile: str) -> Iterator[Browser]:
    """Chromium with its profile in the folder `profile`; it ends with the block."""
    assert CHROMIUM
    to_it, ours_to = os.pipe()
    ours_from, from_it = os.pipe()
    # Chromium reads commands on descriptor 3 and answers on 4; a shell puts ours there.
    command = f'exec 3<&{to_it} 4>&{from_it}; exec "$0" "$@"'
    process = subprocess.Popen(
        ["/bin/bash", "-c", command, CHROMIUM, *_FLAGS, f"--user-data-dir={profile}"],
        pass_fds=(to_it, from_it),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    os.close(to_it)
    os.close(from_it)
    try:
        opened = Browser(ours_to, ours_from)
        opened.attach()
        yield opened
    finally:
        process.terminate()
        process.wait()
        os.close(ours_to)
        os.close(ours_from)
