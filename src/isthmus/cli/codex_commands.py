"""`isthmus codex`: let the Codex CLI work with any model, for good (`setup`) or for one go (`run`)."""

from __future__ import annotations

import asyncio
import logging
import sys
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer
from rich.text import Text

from isthmus.cli.codex_config import Settings
from isthmus.cli.codex_setup import CATALOGUE, Change, carry_out, codex_home, diff_lines, plan_setup, plan_undo
from isthmus.cli.terminal import open_console, plural, words
from isthmus.errors import ConfigError
from isthmus.protocol.json import JsonObject

codex_app = typer.Typer(name="codex", help="Use the Codex CLI with any model.", no_args_is_help=True)

Model = Annotated[str | None, typer.Option(help="Alias, or `provider/model`; else the default model.")]
ConfigFile = Annotated[Path | None, typer.Option(help="Config file of the gateway (TOML).")]


@codex_app.command()
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
    undo: Annotated[bool, typer.Option("--undo", help="Take out what an earlier setup put in.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the changes and write nothing.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    config: ConfigFile = None,
) -> None:
    """Tell Codex about the gateway and its models. Your own settings stay; `--undo` restores every byte."""
    home = codex_home(codex_home_)
    if undo:
        changes = plan_undo(home, profile)
    else:
        base, chosen, catalogue = _ask_gateway(url, model) if url else _read_offer(config, model)
        settings = Settings(f"{base}/v1", chosen, str(home / CATALOGUE), key_env)
        changes = plan_setup(home, settings, catalogue, profile)
    if not changes:
        _say("Nothing to undo." if undo else "Codex is set up already; nothing to change.")
        return
    _show(changes)
    if dry_run:
        return
    if not yes and sys.stdin.isatty() and not typer.confirm("Write this?", default=True, err=True):
        raise typer.Exit(1)
    carry_out(changes)
    start = f"codex -p {profile}" if profile else "codex"
    _say("Codex is as it was before." if undo else f"Done. Start the gateway with `isthmus serve`, then `{start}`.")


@codex_app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def run(
    context: typer.Context,
    model: Model = None,
    binary: Annotated[str | None, typer.Option(help="The `codex` program; else the installed one.")] = None,
    log: Annotated[Path | None, typer.Option(help="Write the gateway's log here.")] = None,
    config: ConfigFile = None,
) -> None:
    """Start gateway and Codex together for one go: `isthmus codex run -- exec "fix the tests"`."""
    from isthmus.cli.codex_run import run_codex
    from isthmus.config import load_config
    from isthmus.upstream.codex.options import find_binary

    program = find_binary(binary)
    store = load_config(config).config.store.url
    settings = load_config(
        config, overrides={"server.host": "127.0.0.1", "server.port": 0, "store.url": _own_store(store)}
    ).config
    chosen, catalogue = _offer(settings, model)
    _log_to(log)
    raise typer.Exit(asyncio.run(run_codex(program, settings, chosen, catalogue, context.args)))


def _read_offer(config: Path | None, model: str | None) -> tuple[str, str, JsonObject]:
    """Address, model and catalogue, from the gateway's own configuration."""
    from isthmus.config import load_config

    settings = load_config(config).config
    host = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(settings.server.host, settings.server.host)
    return f"http://{host}:{settings.server.port}", *_offer(settings, model)


def _offer(settings: Any, model: str | None) -> tuple[str, JsonObject]:
    from isthmus.providers import load_provider
    from isthmus.providers.codex_catalog import codex_catalogue, describe_offered, offered_models

    folders = [Path(folder) for folder in settings.provider_folders]
    providers = {
        name: load_provider(given.uses or name, folders, models=given.models)
        for name, given in settings.providers.items()
    }
    names = settings.models
    chosen = model or names.default
    if not chosen:
        raise ConfigError("no model to use: name one with `--model provider/model`, or set `models.default`")
    first = {chosen: describe_offered(chosen, providers, names.aliases, names.default)}
    return chosen, codex_catalogue(first | offered_models(providers, names.aliases, names.default))


def _ask_gateway(url: str, model: str | None) -> tuple[str, str, JsonObject]:
    """Address, model and catalogue, from a gateway that runs."""
    base = url.rstrip("/").removesuffix("/v1")
    try:
        with urllib.request.urlopen(f"{base}/v1/models", timeout=10) as answer:
            listed: Mapping[str, Any] = msgspec.json.decode(answer.read())
            entries = [entry for entry in listed["models"] if model is None or entry["slug"] == model]
    except (OSError, ValueError, msgspec.DecodeError, LookupError, TypeError) as error:
        raise ConfigError(f"`{base}` does not answer like a gateway: {error}; is it running?") from error
    if not entries:
        known = ", ".join(f"`{entry['slug']}`" for entry in listed["models"])
        raise ConfigError(f"the gateway does not list the model `{model}`; it has {known or 'none'}")
    return base, entries[0]["slug"], {"models": listed["models"]}


def _own_store(url: str) -> str:
    """A file of its own beside the gateway's, so that a running gateway is not disturbed; its key outlives the run."""
    prefix, file = "sqlite:", url.removeprefix("sqlite:")
    return url if file == url or ":memory:" in file else f"{prefix}{Path(file).with_name('codex.db')}"


def _log_to(file: Path | None) -> None:
    root = logging.getLogger("isthmus")
    handler = logging.FileHandler(file) if file is not None else logging.NullHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname).1s %(message)s", "%H:%M:%S"))
    root.handlers[:] = [handler]
    root.setLevel(logging.INFO)
    root.propagate = False


def _show(changes: list[Change]) -> None:
    console = open_console()
    styles = {"+": "green", "-": "red", "@": "cyan"}
    for change in changes:
        if change.quiet:
            console.print(words(_summary(change)), soft_wrap=True)
            continue
        for line in diff_lines(change):
            console.print(Text(line, styles.get(line[:1], "")), soft_wrap=True)


def _summary(change: Change) -> str:
    if change.after is None:
        return f"remove `{change.path}`"
    count = len(msgspec.json.decode(change.after)["models"])
    return f"{'write' if change.before is None else 'update'} `{change.path}` ({plural(count, 'model')})"


def _say(sentence: str) -> None:
    open_console(stderr=True).print(words(sentence), soft_wrap=True)
