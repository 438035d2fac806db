"""Commands of other packages: listed without being imported, and all of them there."""

import subprocess
import sys

import pytest

from turnout.cli import status
from turnout.cli.elsewhere import HOMES


@pytest.mark.parametrize("name", sorted(HOMES))
def test_each_command_is_there_and_explains_itself(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert status([name, "--help"]) == 0
    assert f"Usage: turnout {name}" in " ".join(capsys.readouterr().out.split())


def test_help_lists_them_without_importing_them() -> None:
    code = (
        "import sys; from turnout.cli import status; status(['--help']); "
        f"homes = {[home.module for home in HOMES.values()]}; "
        "assert not {*homes, 'torch', 'numpy'} & set(sys.modules), set(sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert all(name in done.stdout for name in HOMES)


def test_a_mistyped_command_is_answered_with_the_nearest(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert status(["adit"]) == 2
    assert "did you mean 'audit'?" in capsys.readouterr().err
