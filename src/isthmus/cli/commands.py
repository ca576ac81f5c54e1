"""Every part of the `isthmus` command, mounted in one place, and loaded when it is named.

Errors on purpose become one line on stderr and exit code 1; anything else that rises is our bug and shows itself.
Without a command the gateway is started.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Annotated, Any, ClassVar, Final

import typer
from typer.main import get_group

from isthmus import __version__
from isthmus.bridge.resolve import nearest_name
from isthmus.cli import help_view
from isthmus.cli.plain_options import for_typer
from isthmus.cli.terminal import say_failure
from isthmus.errors import IsthmusError

_COMMANDS: Final = {
    "serve": "isthmus.cli.serve_command:serve",
    "init": "isthmus.cli.init_command:init",
    "doctor": "isthmus.cli.doctor_command:doctor",
    "explain": "isthmus.cli.explain_command:explain",
    "trace": "isthmus.cli.trace_commands:trace_app",
    "chat": "isthmus.cli.chat_command:chat",
    "models": "isthmus.cli.models_command:models",
    "providers": "isthmus.cli.providers_commands:providers_app",
    "config": "isthmus.cli.config_commands:config_app",
    "keys": "isthmus.cli.keys_commands:keys_app",
    "audit": "isthmus.cli.audit_command:audit",
    "store": "isthmus.cli.store_commands:store_app",
    "usage": "isthmus.cli.usage_command:usage",
    "webhooks": "isthmus.cli.webhooks_commands:webhooks_app",
    "mcp": "isthmus.cli.mcp_commands:mcp_app",
    "codex": "isthmus.cli.codex_commands:codex_app",
    "claude": "isthmus.cli.claude_commands:claude_app",
}
"""In the order of the help. A gateway starts without what the others are made of."""


class Commands(help_view.HelpfulGroup):
    """All commands, with one way to fail."""

    sections: ClassVar[Mapping[str, Sequence[str]]] = {
        "Begin": ("chat", "serve", "init", "codex", "claude"),
        "See what happens": ("doctor", "models", "providers", "explain", "trace", "usage"),
        "Look after a gateway": ("config", "keys", "audit", "store", "webhooks", "mcp"),
    }

    def list_commands(self, ctx: Any) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in self.commands and cmd_name in _COMMANDS:
            module, _, name = _COMMANDS[cmd_name].partition(":")
            found = getattr(import_module(module), name)
            one = help_view.Commands()
            if isinstance(found, typer.Typer):
                one.add_typer(found)
            else:
                one.command()(for_typer(found))
                one.callback()(_nothing)  # a group of one command is told apart from the command itself
            self.commands[cmd_name] = get_group(one).commands[cmd_name]
        return super().get_command(ctx, cmd_name)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """A slip is told what it most likely meant: typer looks only among what has been imported."""
        if near := None if args[0] in _COMMANDS else nearest_name(args[0], _COMMANDS):
            ctx.fail(f"No such command '{args[0]}'. Did you mean '{near}'?")
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except IsthmusError as error:
            say_failure(error)
            raise typer.Exit(1) from error


app = help_view.Commands(
    cls=Commands,
    help="Every client of the OpenAI Responses API, on every model.",
    epilog="Without a command the gateway is started, as with `isthmus serve`.",
    pretty_exceptions_enable=False,  # a traceback with local values could show a key
)


def _nothing() -> None:
    pass


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
        from isthmus.cli.serve_command import serve

        serve()
