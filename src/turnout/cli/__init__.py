"""The command line. Nothing that takes time is imported before a command needs it."""

import errno
import os
import re
import sys
from collections.abc import Sequence
from typing import NoReturn

import click
import typer

from turnout.errors import CheckpointError, InputError, WorkerError

USER_ERROR, FAILED, INTERRUPTED = 2, 1, 130


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """`turnout …`: exit code 0 if all went well, 2 for bad input, 1 if a run diverged or failed."""
    raise SystemExit(status(arguments))


def status(arguments: Sequence[str] | None = None) -> int:
    """Run the command and turn what people can mend into one sentence on stderr."""
    from turnout.cli.app import app
    from turnout.experiments.interrupt import Interrupted

    command = typer.main.get_command(app)
    args = None if arguments is None else list(arguments)
    try:
        code = command.main(args=args, prog_name="turnout", standalone_mode=False)
        sys.stdout.flush()
        return code if isinstance(code, int) else 0
    except InputError as error:
        return _complain(str(error), USER_ERROR)
    except click.ClickException as error:
        # Typer and click both suggest what was meant.
        return _complain(
            re.sub(r"( Did you mean .*?\?)\1", r"\1", error.format_message()), USER_ERROR
        )
    except Interrupted as stopped:
        return _complain(f"stopped at {stopped}", INTERRUPTED)
    except (CheckpointError, WorkerError) as error:
        return _complain(str(error), FAILED)
    except (click.Abort, KeyboardInterrupt):
        return _complain("interrupted", INTERRUPTED)
    except BrokenPipeError:
        # Whoever read our output has had enough; let Python's own flush at exit go nowhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        # No name that is too long was made up here: it was given.
        code = USER_ERROR if error.errno == errno.ENAMETOOLONG else FAILED
        return _complain(f"{where}{error.strerror or error}", code)


def _complain(sentence: str, code: int) -> int:
    if "TORCHELASTIC_RUN_ID" in os.environ and os.environ.get("RANK", "0") != "0":
        return code  # Under torchrun the first process says it for all.
    print(f"turnout: {' '.join(sentence.split())}", file=sys.stderr)  # noqa: T201
    return code
