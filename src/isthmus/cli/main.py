"""The `isthmus` command: every part of it, mounted in one place.

Errors on purpose become one line on stderr and exit code 1; anything else that rises is our bug and shows itself.
Without a command the gateway is started.
"""

from __future__ import annotations

import sys
from io import TextIOWrapper
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from isthmus import __version__
from isthmus.cli.chat_command import chat
from isthmus.cli.codex_commands import codex_app
from isthmus.cli.config_commands import config_app
from isthmus.cli.explain_command import explain
from isthmus.cli.init_command import init
from isthmus.cli.providers_commands import providers_app
from isthmus.cli.serve_command import serve
from isthmus.cli.store_commands import store_app
from isthmus.cli.terminal import say_error
from isthmus.errors import IsthmusError


class Commands(TyperGroup):
    """All commands, with one way to fail."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except IsthmusError as error:
            say_error(error.message)
            raise typer.Exit(1) from error


app = typer.Typer(
    cls=Commands,
    help="Every client of the OpenAI Responses API, on every model.",
    epilog="Without a command the gateway is started, as with `isthmus serve`.",
    pretty_exceptions_enable=False,  # a traceback with local values could show a key
    rich_markup_mode="markdown",
)


def _show_version(asked: bool) -> None:
    if asked:
        typer.echo(f"isthmus {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def start(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and leave.")
    ] = False,
) -> None:
    del version
    if context.invoked_subcommand is None:
        serve()


app.command()(serve)
app.command()(init)
app.command()(explain)
app.command()(chat)
app.add_typer(providers_app)
app.add_typer(config_app)
app.add_typer(store_app)
app.add_typer(codex_app)


def main() -> None:
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal that lacks a sign shows `?` in its place
    app()
