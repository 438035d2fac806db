"""`turnout list` and `turnout schema`: what there is to say in an experiment file."""

from turnout.cli.screen import print_table, say, stdout
from turnout.experiments.catalogue import CATALOGUES
from turnout.experiments.files import json_text


def show_list(kind: str, as_json: bool) -> None:
    """Names, options with their defaults, and what each is."""
    items = CATALOGUES[kind]()
    if as_json:
        stdout().out(json_text([item._asdict() for item in items]), end="", highlight=False)
        return
    print_table(["name", "options", ""], [list(item) for item in items])


def show_schema(as_json: bool) -> None:
    """The tables of a file, each field with type, default and meaning."""
    from turnout.experiments.schema import json_schema, tables

    if as_json:
        stdout().out(json_text(json_schema()), end="", highlight=False)
        return
    for table in tables():
        say(table.heading, style="bold")
        say(table.about, style="italic")
        rows = [
            [field.key, field.kind, field.default or "(required)", field.description]
            for field in table.fields
        ]
        print_table(["field", "what it must be", "default", ""], rows)
        say("")
