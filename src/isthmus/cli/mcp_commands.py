"""`isthmus mcp list`: do the MCP servers of the configuration answer, and what may be called there?

They are asked as the gateway would ask them, with the operator's own headers. Exit code 1: one of them did not answer.
"""

from __future__ import annotations

import asyncio
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from isthmus.bridge.types.managed import NOTHING_MANAGED, Listing
from isthmus.cli.config_commands import ConfigFlag, SetFlag, parse_settings
from isthmus.cli.help_view import Commands, examples
from isthmus.cli.layout import show_table
from isthmus.cli.terminal import clean, open_console, put
from isthmus.config import load_config
from isthmus.config.schema import Config
from isthmus.errors import ConfigError

mcp_app = Commands(name="mcp", help="Look after MCP servers.", no_args_is_help=True)


@mcp_app.callback()
def _group() -> None:
    """Look after MCP servers."""


@mcp_app.command(name="list")
@examples("isthmus mcp list", "isthmus mcp list docs")
def list_servers(
    name: Annotated[str | None, typer.Argument(help="Which one; none: all that have a `url`.")] = None,
    config: ConfigFlag = None,
    settings: SetFlag = None,
) -> None:
    """Ask MCP servers for their tools, and show which may be called and which calls the user must approve."""
    read = load_config(config, overrides=parse_settings(settings or ())).config
    own = [label for label, server in read.mcp.items() if server.url and name in (None, label)]
    if not own:
        there = ", ".join(f"`{label}`" for label, server in read.mcp.items() if server.url) or "none"
        wanted = f"`mcp.{name}` has no `url`" if name else "no MCP server has a `url` in this configuration"
        raise ConfigError(f"{wanted}; there are: {there}")
    found = asyncio.run(_ask(read, own))
    console = open_console()
    for label, listing in found.items():
        _show(console, label, listing)
    if any(listing.error is not None for listing in found.values()):
        raise typer.Exit(1)


async def _ask(config: Config, labels: list[str]) -> dict[str, Listing]:
    from isthmus.wiring_mcp import open_mcp_host

    host = open_mcp_host(config)
    tools = [{"type": "mcp", "server_label": label, "require_approval": "never"} for label in labels]
    try:
        return dict((await host.offer(NOTHING_MANAGED, tools, [], "")).mcp)
    finally:
        await host.aclose()


def _show(console: Console, label: str, listing: Listing) -> None:
    if listing.error is not None:
        put(console, Text.assemble((clean(label), "red"), " ", clean(listing.error["message"])))
        return
    console.print(f"[green]{escape(label)}[/] {len(listing.tools)} tools may be called")
    table = Table(box=None, padding=(0, 3, 0, 2), show_header=False, pad_edge=False)
    for one in listing.tools:
        about = str(one.get("description") or "").strip().partition("\n")[0]
        table.add_row(escape(one["name"]), "asks" if one["name"] in listing.asks else "", escape(about))
    show_table(console, table, indent=0)
