"""No test reads or writes the user's own cache, nor depends on their data folder."""

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TURNOUT_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("TURNOUT_DATA", raising=False)
