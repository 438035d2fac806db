"""`turnout audit LOG`."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class Intended(StrEnum):
    equal = "equal"
    samples = "samples"


def audit_command(
    log: Annotated[
        Path,
        typer.Argument(
            metavar="LOG",
            help="CSV or Parquet of rounds, intervals or events; .npy mask; FLASH or FedScale trace",
        ),
    ],
    round_length: Annotated[
        float | None,
        typer.Option(
            "--round-length",
            metavar="SECONDS",
            help="of a round, in a log of times (default: a usual length of which 500 fit)",
        ),
    ] = None,
    clients: Annotated[
        int | None,
        typer.Option(
            "--clients", metavar="N", help="how many there are, if some are not in the log"
        ),
    ] = None,
    classes: Annotated[
        Path | None,
        typer.Option(
            "--classes",
            metavar="FILE",
            help="class counts: client, class, count a line, or client and a column a class",
        ),
    ] = None,
    intended: Annotated[
        Intended, typer.Option("--intended", help="weights of the clients in the objective")
    ] = Intended.equal,
    parameters: Annotated[
        int, typer.Option("--parameters", metavar="D", help="size of the model, for memory costs")
    ] = 1_000_000,
    as_json: Annotated[bool, typer.Option("--json", help="print everything as JSON")] = False,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="DIR",
            help="write audit.html, audit.json, clients.csv, and an experiment.toml that replays the log",
        ),
    ] = None,
) -> None:
    """Who shows up in a participation log, what that does to a model, and what to run.

    For example: turnout audit phones.csv --clients 300 --out diagnosis; then open
    diagnosis/audit.html, and try what it recommends: turnout run diagnosis/experiment.toml.
    """
    # Imported when it is asked for: `turnout --help` should not pay for it.
    from rich.console import Console

    from turnout.audit.audit import audit
    from turnout.audit.output import folder_for, write_all
    from turnout.audit.plain import as_json as plain
    from turnout.audit.terminal import show
    from turnout.errors import require

    require(parameters >= 1, "--parameters", parameters, "at least 1")
    folder = None if out is None else folder_for(out)
    with _watched() as begin:
        found = audit(log, round_length, clients, classes, intended.value, parameters, begin)
        begin("writing")
        written = [] if folder is None else write_all(found, folder)
    if as_json:
        typer.echo(json.dumps(plain(found)))
        return
    show(found, Console(highlight=False))
    for line in written:
        typer.echo(line)


_SHARES = {"reading": 60, "processes": 20, "weights": 10, "writing": 10}
"""About how much of the time each step takes, in a large log."""


@contextmanager
def _watched() -> Iterator[Callable[[str], None]]:
    """Something to call when a step begins: a bar with an estimate on terminals, else nothing."""
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda step: None
        return
    bar = Progress(
        TextColumn("{task.description:9}"),
        BarColumn(),
        TimeElapsedColumn(),
        TextColumn("so far,"),
        TimeRemainingColumn(compact=True),
        TextColumn("left"),
        console=console,
        transient=True,
    )
    with bar:
        task = bar.add_task("starting", total=sum(_SHARES.values()))
        names = list(_SHARES)

        def begin(step: str) -> None:
            done = sum(_SHARES[name] for name in names[: names.index(step)])
            bar.update(task, description=step, completed=done)

        yield begin
