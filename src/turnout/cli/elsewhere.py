"""Commands that live with what they do, and are imported only when they are called."""

from importlib import import_module
from typing import NamedTuple

import click
import typer
from typer.core import TyperCommand, TyperGroup

from turnout.errors import choose


class Home(NamedTuple):
    module: str
    name: str
    """A typer app, or a function that typer makes a command of."""
    help: str


HOMES = {
    "audit": Home(
        "turnout.audit.command",
        "audit_command",
        "From a log: who shows up, what that does, and what to run.",
    ),
    "bench": Home(
        "turnout.bench.command",
        "bench",
        "How fast turnout is on this machine, beside others.",
    ),
    "report": Home(
        "turnout.report.command",
        "report_command",
        "Finished runs as one page for a browser, side by side.",
    ),
    "reproduce": Home(
        "turnout.reproduce.command",
        "reproduce",
        "A table or figure of the papers: its value, ours, and a verdict.",
    ),
    "theory": Home(
        "turnout.theory.command", "app", "The papers' bounds and settings as calculators."
    ),
}


def fetch(name: str) -> click.Command:
    """The command itself."""
    home = HOMES[name]
    found = getattr(import_module(home.module), home.name)
    if not isinstance(found, typer.Typer):
        function, found = found, typer.Typer(pretty_exceptions_enable=False, add_completion=False)
        found.command(name)(function)
    return typer.main.get_command(found)


class Elsewhere(TyperGroup):
    """A group that lists the commands of `HOMES` without importing them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*super().list_commands(ctx), *HOMES]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in HOMES:
            return TyperCommand(cmd_name, help=HOMES[cmd_name].help)
        return super().get_command(ctx, cmd_name)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] in HOMES:
            return args[0], fetch(args[0]), args[1:]
        if args and not args[0].startswith("-"):
            choose("command", args[0], self.list_commands(ctx))
        return super().resolve_command(ctx, args)
