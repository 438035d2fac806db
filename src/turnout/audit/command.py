"""`turnout audit LOG`."""

import json
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
            help="write audit.json, clients.csv and an experiment.toml that replays the log",
        ),
    ] = None,
) -> None:
    """Who shows up in a participation log, what that does to a model, and what to run."""
    # Imported when it is asked for: `turnout --help` should not pay for it.
    from turnout.audit.audit import audit
    from turnout.audit.plain import as_json as plain
    from turnout.errors import require

    require(parameters >= 1, "--parameters", parameters, "at least 1")
    found = audit(log, round_length, clients, classes, intended.value, parameters)
    written: list[Path] = []
    if out is not None:
        from turnout.audit.plain import write_clients
        from turnout.audit.replay import write_replay

        out.mkdir(parents=True, exist_ok=True)
        (out / "audit.json").write_text(json.dumps(plain(found), indent=1), encoding="utf-8")
        write_clients(out / "clients.csv", found)
        written = [write_replay(out, found.history, found.advice, found.classes)]
    if as_json:
        typer.echo(json.dumps(plain(found)))
        return
    from rich.console import Console

    from turnout.audit.terminal import show

    show(found, Console(highlight=False))
    for path in written:
        typer.echo(f"turnout run {path}  # replays this log: plain averaging beside the above")
