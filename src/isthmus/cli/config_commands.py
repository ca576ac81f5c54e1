"""`isthmus config check | print`: is the configuration sound, and what does it come to?

Both read it exactly as the gateway would. Output is for pipes, problems of `print` go to stderr; exit code 1 means that
the gateway would not start.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from isthmus.cli.help_view import OUTPUT, Commands, examples
from isthmus.cli.layout import show_table
from isthmus.cli.terminal import clean, open_console, put, say
from isthmus.config.keys_shown import key_words
from isthmus.config.known import RUN_TIME
from isthmus.config.load import Reading, read_config
from isthmus.config.render import render_json, render_toml
from isthmus.config.schema import ProviderConfig, Server
from isthmus.errors import ConfigError
from isthmus.values.problems import Problem, dotted
from isthmus.values.redact import redact_url

config_app = Commands(name="config", help="Check or show the configuration.", no_args_is_help=True)

ConfigFlag = Annotated[
    Path | None,
    typer.Option("--config", "-c", help="The configuration file, in place of the one that would be found."),
]
SetFlag = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Override a key, for example `--set server.port=9000`."),
]


@config_app.command("check")
@examples("isthmus config check", "isthmus config check --set server.port=9000")
def check(
    config: ConfigFlag = None,
    settings: SetFlag = None,
    as_json: Annotated[bool, typer.Option("--json", help="The problems as JSON.", rich_help_panel=OUTPUT)] = False,
) -> None:
    """Say whether the gateway could start with this configuration, and list every problem with its fix."""
    reading = _read(config, settings)
    if as_json:
        typer.echo(json.dumps([_as_json(problem) for problem in reading.problems], indent=2, ensure_ascii=False))
    else:
        console = open_console()
        _print_problems(console, reading)
        if not reading.errors:
            _print_summary(console, reading)
    if reading.errors:
        raise typer.Exit(1)


@config_app.command("print")
@examples("isthmus config print --origins", "isthmus config print --json")
def print_config(
    config: ConfigFlag = None,
    settings: SetFlag = None,
    as_json: Annotated[bool, typer.Option("--json", help="JSON in place of TOML.", rich_help_panel=OUTPUT)] = False,
    origins: Annotated[bool, typer.Option("--origins", help="Tell where each value comes from.")] = False,
) -> None:
    """Print the effective configuration, defaults included and secrets left out."""
    reading = _read(config, settings)
    typer.echo((render_json if as_json else render_toml)(reading, origins=origins).rstrip("\n"))
    if reading.errors:
        _print_problems(open_console(stderr=True), reading)
        raise typer.Exit(1)


_ASKS: Final = {"always": "for each call", "writes": "for calls that write", "never": "as the client wants"}
"""When the user must approve a call of an MCP server."""


def parse_settings(settings: Iterable[str]) -> dict[str, object]:
    """`--set KEY=VALUE` flags → overrides for `load_config`."""
    overrides: dict[str, object] = {}
    for setting in settings:
        key, equals, value = setting.partition("=")
        if not equals or not key.strip():
            raise ConfigError(f"`--set {setting}` has no value. Fix: write `--set section.key=value`")
        overrides[key.strip()] = value
    return overrides


def _read(config: Path | None, settings: list[str] | None) -> Reading:
    try:
        return read_config(config, overrides=parse_settings(settings or ()))
    except ConfigError as error:
        say(Text.assemble(("error", "red"), " ", clean(error.message)), stderr=True)
        raise typer.Exit(1) from error


def _print_problems(console: Console, reading: Reading) -> None:
    for problem in (*reading.errors, *reading.warnings):
        colour = "red" if problem.severity == "error" else "yellow"
        place = f"{problem.place}: " if problem.place else ""
        key = f"`{dotted(problem.key)}` " if problem.key else ""
        put(console, Text.assemble((problem.severity, colour), " ", clean(place + key + problem.message)))
        put(console, Text.assemble(("  fix:", "dim"), " ", clean(problem.fix)))
    if reading.errors:
        count = len(reading.errors)
        console.print(f"[red]{count} error{'s' if count > 1 else ''}[/]: the gateway cannot start like this.")


def _print_summary(console: Console, reading: Reading) -> None:
    config = reading.config
    facts = Table.grid(padding=(0, 3))
    facts.add_column(style="dim", no_wrap=True)
    facts.add_column(overflow="fold")
    facts.add_row("file", Text(str(reading.path or "none: defaults and the environment")))
    facts.add_row("listens on", Text(_listening(config.server)))
    facts.add_row("default model", Text(config.models.default or "none: every request must name its model"))
    keep = f"kept {config.store.keep_days:g} days" if config.store.keep_days else "kept for ever"
    facts.add_row("store", Text(f"{redact_url(config.store.url)} ({keep})"))
    facts.add_row("log", f"{config.log.level}, {config.log.format}")
    console.print("[green]The configuration is sound.[/]")
    show_table(console, facts, indent=0)
    console.print()
    providers = _table("provider", "uses", "address", "key")
    for name, provider in config.providers.items():
        providers.add_row(name, provider.uses, Text(_address(reading, name, provider)), Text(key_words(reading, name)))
    show_table(console, providers, indent=0)
    if config.mcp:
        console.print()
        servers = _table("mcp", "address", "tools", "asks")
        for name, server in config.mcp.items():
            where = redact_url(server.url) or ", ".join((*server.allowed_hosts, *server.private_hosts))
            tools = ", ".join(server.allowed_tools) or "all"
            tools += " (read-only)" if server.read_only else ""
            servers.add_row(Text(name), Text(where), Text(tools), _ASKS[server.require_approval])
        show_table(console, servers, indent=0)
    if config.models.aliases:
        console.print()
        aliases = _table("alias", "model", "falls back to")
        for alias, target in config.models.aliases.items():
            aliases.add_row(Text(alias), Text(target), Text(", ".join(config.models.fallbacks.get(alias, ()))))
        show_table(console, aliases, indent=0)
    if config.models.choices:
        console.print()
        choices = _table("choice", "by", "among")
        for name, choice in config.models.choices.items():
            weights = choice.weights or [1] * len(choice.targets)
            pairs = zip(choice.targets, weights, strict=True)
            among = [f"{target} ({weight})" if choice.by == "weight" else target for target, weight in pairs]
            choices.add_row(Text(name), choice.by, Text(", ".join(among)))
        show_table(console, choices, indent=0)


def _table(*columns: str) -> Table:
    table = Table(box=None, padding=(0, 3, 0, 0), header_style="dim", title=None, pad_edge=False)
    for column in columns:
        table.add_column(column, overflow="fold")
    return table


def _address(reading: Reading, name: str, provider: ProviderConfig) -> str:
    if provider.endpoints:
        return ", ".join(redact_url(place.base_url) or "its own" for place in provider.endpoints)
    own = reading.known[name].base_url if name in reading.known else ""
    return redact_url(provider.base_url or own) or ("built in" if provider.uses in RUN_TIME else "")


def _listening(server: Server) -> str:
    if server.unix_socket:
        return f"unix:{server.unix_socket}"
    return f"{'https' if server.tls_cert else 'http'}://{_in_url(server.host)}:{server.port}"


def _in_url(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _as_json(problem: Problem) -> dict[str, str]:
    return {
        "severity": problem.severity,
        "key": dotted(problem.key),
        "place": problem.place,
        "message": problem.message,
        "fix": problem.fix,
    }
