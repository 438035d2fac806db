"""The commands and their options; what they do is in the modules beside this one."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from turnout import __version__
from turnout.cli.elsewhere import Elsewhere

app = typer.Typer(
    name="turnout",
    cls=Elsewhere,
    help="Federated learning for clients that do not always show up.",
    epilog="Examples:\n\n"
    "  turnout demo\n\n"
    "  turnout run examples/safari_mnist.toml --set run.rounds=50\n\n"
    "  turnout list algorithms",
    add_completion=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Out = Annotated[
    Path | None,
    typer.Option("--out", metavar="DIR", help="run directory (default: runs/NAME-TIME)"),
]
Changes = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="KEY=VALUE", help="change a field, as in run.rounds=50; repeatable"
    ),
]
Jobs = Annotated[
    int, typer.Option("--jobs", "-j", metavar="N", help="processes; each plays a cell at a time")
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="say nothing but errors")]
AsJson = Annotated[bool, typer.Option("--json", help="print the summary as JSON")]


class Kind(StrEnum):
    algorithms = "algorithms"
    participation = "participation"
    datasets = "datasets"
    models = "models"


@app.callback(invoke_without_command=True)
def turnout(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="print the version and exit")] = False,
) -> None:
    if version:
        typer.echo(f"turnout {__version__}")
    elif context.invoked_subcommand is None:
        typer.echo(context.get_help())


@app.command()
def demo(
    out: Out = None, changes: Changes = None, quiet: Quiet = False, as_json: AsJson = False
) -> int:
    """Eight methods where clients stay away: a table and a report."""
    from turnout.cli.run import demonstrate

    return demonstrate(out, changes or [], quiet, as_json)


@app.command(
    epilog="The fields of FILE: turnout schema. What it can name: turnout list. Exit code 1 if a run "
    "diverged (the others go on), 2 for bad input."
)
def run(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="an experiment, as in examples/*.toml")
    ],
    changes: Changes = None,
    out: Out = None,
    engine: Annotated[
        str | None, typer.Option(metavar="NAME", help="what trains the clients: auto, reference, …")
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="go on with the run in --out where it was")
    ] = False,
    jobs: Jobs = 1,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> int:
    """Run an experiment: every method with every seed, compared."""
    from turnout.cli.run import execute

    given = [*(changes or []), *([f'run.engine="{engine}"'] if engine else [])]
    return execute(file, given, out, quiet, as_json, resume, jobs)


@app.command("list")
def list_(
    kind: Annotated[Kind, typer.Argument(help="what to list", show_choices=True)],
    as_json: Annotated[bool, typer.Option("--json", help="print JSON")] = False,
) -> None:
    """What an experiment file can name, with options and defaults."""
    from turnout.cli.show import show_list

    show_list(kind.value, as_json)


@app.command()
def schema(
    as_json: Annotated[bool, typer.Option("--json", help="print JSON schema")] = False,
) -> None:
    """What an experiment file can say: every field and its meaning."""
    from turnout.cli.show import show_schema

    show_schema(as_json)
