"""`isthmus codex`: let the Codex CLI work with any model, for good (`setup`) or for one go (`run`)."""

from __future__ import annotations

import asyncio
import os
import shlex
from pathlib import Path
from typing import Annotated, Final

import typer

from isthmus.cli.codex_daemon import STOP, daemon_runs
from isthmus.cli.help_view import Commands, examples
from isthmus.cli.propose import propose, say
from isthmus.protocol.json import JsonObject

codex_app = Commands(name="codex", help="Use the Codex CLI with any model.", no_args_is_help=True)

Model = Annotated[str | None, typer.Option(help="Alias, or `provider/model`; else the default model.")]
ConfigFile = Annotated[Path | None, typer.Option(help="Config file of the gateway (TOML).")]

_UNDONE: Final = "Our settings are out again; what you and Codex have set since then stays."


@codex_app.command()
@examples(
    "isthmus codex setup",
    "isthmus codex setup --model deepseek/deepseek-v4-pro --dry-run",
    "isthmus codex setup --undo",
)
def setup(
    model: Model = None,
    profile: Annotated[
        str | None, typer.Option(help="Write a profile of this name (`codex -p NAME`) and leave the main file alone.")
    ] = None,
    codex_home_: Annotated[
        Path | None, typer.Option("--codex-home", help="Codex's own folder; else $CODEX_HOME or ~/.codex.")
    ] = None,
    url: Annotated[
        str | None, typer.Option(help="A gateway elsewhere: its models are asked for, its address is written.")
    ] = None,
    key_env: Annotated[
        str | None, typer.Option(help="Environment variable with a key for the gateway, if it wants one.")
    ] = None,
    websockets: Annotated[
        bool, typer.Option("--websockets", help="Have Codex keep one WebSocket for a conversation.")
    ] = False,
    search: Annotated[
        bool | None,
        typer.Option(
            "--search/--no-search", help="Have Codex search through the gateway; else if its `[search]` has a backend."
        ),
    ] = None,
    undo: Annotated[bool, typer.Option("--undo", help="Take out what an earlier setup put in.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the changes and write nothing.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    config: ConfigFile = None,
) -> None:
    """Tell Codex about the gateway and its models. All other settings stay, byte for byte; `--undo` takes ours out."""
    from isthmus.cli.codex_keys import CATALOGUE, Settings
    from isthmus.cli.codex_setup import codex_home, plan_setup, plan_undo

    home = codex_home(codex_home_)
    command = STOP if home == codex_home(None) else f"CODEX_HOME={shlex.quote(str(home))} {STOP}"
    if undo:
        changes = plan_undo(home, profile)
    else:
        base, chosen, catalogue, searches, images = _read_offer(config, url, model, os.environ.get(key_env or "", ""))
        searches = searches if search is None else search
        settings = Settings(f"{base}/v1", chosen, str(home / CATALOGUE), key_env, websockets, images, searches)
        changes = plan_setup(home, settings, catalogue, profile)
    if not changes:
        say("Nothing to undo." if undo else "Codex is set up already; nothing to change.")
        _tell_of_daemon(home, command)
        return
    if not propose(changes, dry_run=dry_run, yes=yes):
        return
    start = f"codex -p {profile}" if profile else "codex"
    say(_UNDONE if undo else f"Done. Start the gateway with `isthmus serve`, then `{start}`.")
    _tell_of_daemon(home, command)


@codex_app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
@examples("isthmus codex run", 'isthmus codex run -- exec "fix the tests"')
def run(
    context: typer.Context,
    model: Model = None,
    binary: Annotated[str | None, typer.Option(help="The `codex` program; else the installed one.")] = None,
    log: Annotated[Path | None, typer.Option(help="Write the gateway's log here.")] = None,
    config: ConfigFile = None,
) -> None:
    """Start gateway and Codex together for one go: `isthmus codex run -- exec "fix the tests"`."""
    from isthmus.cli.beside import log_to, private_settings
    from isthmus.cli.codex_run import run_codex
    from isthmus.cli.offer import offer_models
    from isthmus.providers.codex_catalog import codex_catalogue
    from isthmus.upstream.codex.options import find_binary

    program = find_binary(binary)
    settings = private_settings(config, "codex.db")
    chosen, models = offer_models(settings, model)
    log_to(log)
    raise typer.Exit(asyncio.run(run_codex(program, settings, chosen, codex_catalogue(models), context.args)))


def _read_offer(
    config: Path | None, url: str | None, model: str | None, key: str
) -> tuple[str, str, JsonObject, bool, bool]:
    """Address, model and catalogue, from a running gateway, which may want a key, or from the configuration; and
    whether somebody there searches, and draws images."""
    from isthmus.cli.offer import ask_gateway, offer_models
    from isthmus.config import load_config
    from isthmus.config.schema import draws
    from isthmus.errors import ConfigError
    from isthmus.providers.codex_catalog import codex_catalogue
    from isthmus.server.listen import public_url

    if url:
        base, chosen, listing = ask_gateway(url, model, key)
        told = listing.get("isthmus")
        images = isinstance(told, dict) and bool(told.get("images"))
        return base, chosen, {"models": listing["models"]}, False, images
    settings = load_config(config).config
    address = public_url(settings.server)
    if address.startswith("unix:"):
        raise ConfigError("Codex cannot speak to a Unix socket; give the address of a proxy before it with `--url`")
    chosen, models = offer_models(settings, model)
    return address, chosen, codex_catalogue(models), bool(settings.search.backend), draws(settings)


def _tell_of_daemon(home: Path, command: str) -> None:
    """The command stands on a line of its own, so that it can be copied from a terminal of any width."""
    if daemon_runs(home):
        say("A Codex daemon is running and keeps the settings that it started with. End it:", "yellow")
        say(f"  `{command}`")
