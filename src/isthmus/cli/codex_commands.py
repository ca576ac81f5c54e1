"""`isthmus codex`: let the Codex CLI work with any model, for good (`setup`) or for one go (`run`)."""

from __future__ import annotations

import asyncio
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

import typer

from isthmus.cli.codex_daemon import STOP, daemon_runs
from isthmus.cli.elsewhere import (
    GatewayOption,
    KeyEnvOption,
    KeyOption,
    NoCheckOption,
    ShownKey,
    ask_gateway,
    gateway_base,
    take_key,
    unencrypted,
)
from isthmus.cli.help_view import Commands, examples
from isthmus.cli.propose import propose, say
from isthmus.protocol.json import JsonObject

codex_app = Commands(name="codex", help="Use the Codex CLI with any model.", no_args_is_help=True)

Model = Annotated[str | None, typer.Option(help="Alias, or `provider/model`; else the default model.")]
ConfigFile = Annotated[Path | None, typer.Option(help="Config file of the gateway (TOML).")]

_UNDONE: Final = "Our settings are out again; what you and Codex have set since then stays."
_DOWN: Final = (
    "When Codex says `waiting for network`, the gateway is not running: {start}, and Codex goes on by itself. "
    "`isthmus doctor{where}` says what is wrong."
)


@dataclass(frozen=True, slots=True)
class Offer:
    """What a gateway has for Codex."""

    base: str
    """Its address, without `/v1`."""
    model: str
    catalogue: JsonObject
    searches: bool = False
    draws: bool = False
    trouble: str | None = None
    """What keeps the model from answering, if that is known."""


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
    gateway: GatewayOption = None,
    key: KeyOption = None,
    key_env: KeyEnvOption = None,
    no_check: NoCheckOption = False,
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
    from isthmus.cli.codex_setup import codex_home, others_may_read, plan_setup, plan_undo

    home = codex_home(codex_home_)
    command = STOP if home == codex_home(None) else f"CODEX_HOME={shlex.quote(str(home))} {STOP}"
    shown, trouble = ShownKey(), None
    if undo:
        changes = plan_undo(home, profile)
    else:
        offer, shown = _read_offer(config, gateway, model, key, key_env, asks=not no_check)
        trouble = offer.trouble
        settings = Settings(
            f"{offer.base}/v1",
            offer.model,
            str(home / CATALOGUE),
            key_env=shown.variable or None,
            key="" if shown.variable else shown.value,
            websockets=websockets,
            images=offer.draws,
            search=offer.searches if search is None else search,
        )
        changes = plan_setup(home, settings, offer.catalogue, profile)
    if not changes:
        say("Nothing to undo." if undo else "Codex is set up already; nothing to change.")
        _tell_of_daemon(home, command)
        return
    if not propose(changes, dry_run=dry_run, yes=yes):
        return
    if undo:
        say(_UNDONE)
    else:
        _tell_what_next(gateway, shown, f" -p {profile}" if profile else "")
        if trouble:
            say(f"{trouble[:1].upper()}{trouble[1:]}.", "yellow")
        if shown.value and not shown.variable and (file := others_may_read(changes)):
            say(f"The key stands in `{file}`, which others on this machine may read: `chmod 600 {file}`.", "yellow")
    _tell_of_daemon(home, command)


@codex_app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
@examples("isthmus codex run", 'isthmus codex run -- exec "fix the tests"')
def run(
    context: typer.Context,
    model: Model = None,
    gateway: GatewayOption = None,
    key: KeyOption = None,
    key_env: KeyEnvOption = None,
    binary: Annotated[str | None, typer.Option(help="The `codex` program; else the installed one.")] = None,
    log: Annotated[Path | None, typer.Option(help="Write the gateway's log here.")] = None,
    config: ConfigFile = None,
) -> None:
    """Start gateway and Codex together for one go: `isthmus codex run -- exec "fix the tests"`. With `--gateway`, Codex
    alone."""
    from isthmus.cli.beside import log_to, private_settings
    from isthmus.cli.codex_run import run_codex, run_codex_at
    from isthmus.cli.offer import missing_key, offer_models
    from isthmus.errors import ConfigError
    from isthmus.providers.codex_catalog import codex_catalogue
    from isthmus.upstream.codex.options import find_binary

    program = find_binary(binary)
    if gateway:
        shown = take_key(key, key_env)
        offer = _ask(gateway, model, shown)
        raise typer.Exit(asyncio.run(run_codex_at(program, offer, shown.value, context.args)))
    settings = private_settings(config, "codex.db")
    chosen, models = offer_models(settings, model)
    if trouble := missing_key(settings, chosen):
        raise ConfigError(trouble)
    log_to(log)
    raise typer.Exit(asyncio.run(run_codex(program, settings, chosen, codex_catalogue(models), context.args)))


def _read_offer(
    config: Path | None, gateway: str | None, model: str | None, key: str | None, key_env: str | None, *, asks: bool
) -> tuple[Offer, ShownKey]:
    """From a gateway elsewhere, or from the configuration of the one that will run here; and the key for it."""
    from isthmus.cli.offer import missing_key, offer_models
    from isthmus.config import load_config
    from isthmus.config.schema import draws
    from isthmus.errors import ConfigError
    from isthmus.providers.codex_catalog import codex_catalogue
    from isthmus.server.listen import public_url

    if gateway:
        shown = take_key(key, key_env, needed=asks)
        return (_ask if asks else _assume)(gateway, model, shown), shown
    settings = load_config(config).config
    address = public_url(settings.server)
    if address.startswith("unix:"):
        raise ConfigError("Codex cannot speak to a Unix socket; give the address of a proxy before it with `--gateway`")
    wanted = bool(settings.server.api_keys)
    shown = take_key(key, key_env, needed=False) if wanted or key is not None or key_env is not None else ShownKey()
    if wanted and not shown.value and not shown.variable:
        raise ConfigError(
            "the gateway wants a key (`server.api_keys`); name the variable that holds one with `--key-env`, or give "
            "one with `--key -`"
        )
    chosen, models = offer_models(settings, model)
    searches, trouble = bool(settings.search.backend), missing_key(settings, chosen)
    return Offer(address, chosen, codex_catalogue(models), searches, draws(settings), trouble), shown


def _ask(gateway: str, model: str | None, key: ShownKey) -> Offer:
    from isthmus.cli.offer import heard_model
    from isthmus.providers.codex_catalog import codex_model

    found = ask_gateway(gateway, model, key)
    entries = found.listing["models"]
    if found.described is not None:
        entries = [codex_model(found.model, heard_model(found.model, found.described), 0), *entries]
    return Offer(found.base, found.model, {"models": entries}, found.tells("search"), found.tells("images"))


def _assume(gateway: str, model: str | None, key: ShownKey) -> Offer:
    """What is written without a word from the gateway: the model that was named, and what is known of it here."""
    from isthmus.cli.offer import assume_model
    from isthmus.errors import ConfigError
    from isthmus.providers.codex_catalog import codex_catalogue

    if not model:
        raise ConfigError("with `--no-check` nobody is asked for a default model; name one with `--model`")
    return Offer(gateway_base(gateway), model, codex_catalogue({model: assume_model(model)}))


def _tell_what_next(gateway: str | None, key: ShownKey, arguments: str) -> None:
    from isthmus.cli.codex_program import how_to_start

    if gateway is None:
        say(f"Done. Start the gateway with `isthmus serve`, then `codex{arguments}`.")
    else:
        say(f"Done. `codex{arguments}` works with the gateway at `{gateway_base(gateway)}`.")
        if warning := unencrypted(gateway, key):
            say(warning, "yellow")
    if key.variable:
        say(f"Your key stays where it is: `{key.variable}` must be set wherever Codex is started.")
    for line in how_to_start():
        say(line)
    start = "start it" if gateway is None else "have it started"
    where = f" --gateway {gateway_base(gateway)}" if gateway else ""
    say(_DOWN.format(start=start, where=where))


def _tell_of_daemon(home: Path, command: str) -> None:
    """The command stands on a line of its own, so that it can be copied from a terminal of any width."""
    if daemon_runs(home):
        say("A Codex daemon is running and keeps the settings that it started with. End it:", "yellow")
        say(f"  `{command}`")
