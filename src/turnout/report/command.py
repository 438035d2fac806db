"""`turnout report DIR…`."""

from pathlib import Path
from typing import Annotated

import typer


def report_command(
    folders: Annotated[
        list[Path],
        typer.Argument(metavar="DIR…", help="run directories, as `turnout run` leaves them"),
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="FILE",
            help="the page (default: DIR/report.html, and report.html here for several)",
        ),
    ] = None,
) -> None:
    """Runs as one page that needs nothing else: curves, who took part, who is served, what it cost.

    The methods of several directories stand side by side; what else differs between them is said.
    A run that is still going on is shown as far as it is.
    """
    # Imported when it is asked for: `turnout --help` should not pay for it.
    from turnout.report.comparison import write_report

    typer.echo(write_report(folders, out))
