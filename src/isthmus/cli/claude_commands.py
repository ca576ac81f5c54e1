"""`isthmus claude`: let Claude Code work with any model, for good (`setup`) or for one go (`run`)."""

from __future__ import annotations

import asyncio
import secrets
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

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

if TYPE_CHECKING:
    from isthmus.cli.claude_keys import Settings
    from isthmus.config.schema import Config

claude_app = Commands(name="claude", help="Use Claude Code with any model.", no_args_is_help=True)

Model = Annotated[str | None, typer.Option(help="Alias, or `provider/model`; else the default model.")]
Small = Annotated[
    str | None, typer.Option(help="For short jobs such as titles: another, cheaper model; else the same one.")
]
ConfigFile = Annotated[Path | None, typer.Option(help="Config file of the gateway (TOML).")]

_UNDONE: Final = "Our settings are out again; what you and Claude Code have set since then stays."
_DOWN: Final = (
    "When Claude Code says `Connection refused`, the gateway is not running: {start}, and ask again. "
    "`isthmus doctor{where}` says what is wrong."
)


@claude_app.command()
@examples("isthmus claude setup", "isthmus claude setup --undo")
def setup(
    model: Model = None,
    small_model: Small = None,
    gateway: GatewayOption = None,
    key: KeyOption = None,
    key_env: KeyEnvOption = None,
    no_check: NoCheckOption = False,
    claude_home_: Annotated[
        Path | None,
        typer.Option("--claude-home", help="Claude Code's own folder; else $CLAUDE_CONFIG_DIR or ~/.claude."),
    ] = None,
    undo: Annotated[bool, typer.Option("--undo", help="Take out what an earlier setup put in.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the changes and write nothing.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    config: ConfigFile = None,
) -> None:
    """Tell Claude Code about the gateway and its models. All other settings stay, byte for byte; `--undo` takes ours
    out."""
    from isthmus.cli.claude_program import doubt, find_claude
    from isthmus.cli.claude_setup import claude_home, plan_setup, plan_undo
    from isthmus.errors import ConfigError

    home = claude_home(claude_home_)
    if undo:
        changes = plan_undo(home)
    else:
        shown = take_key(key, key_env)  # Claude Code reads no variable for us: the key itself is written
        settings = _read_settings(config, gateway, shown, model, small_model, asks=not no_check)
        changes = plan_setup(home, settings)
    if not changes:
        say("Nothing to undo." if undo else "Claude Code is set up already; nothing to change.")
        return
    if not propose(changes, dry_run=dry_run, yes=yes):
        return
    if undo:
        say(_UNDONE)
        return
    _tell_what_next(gateway, shown)
    try:
        trouble = doubt(find_claude(None))
    except ConfigError as error:
        trouble = f"{error.message[:1].upper()}{error.message[1:]}."
    if trouble:
        say(trouble, "yellow")


@claude_app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
@examples("isthmus claude run", 'isthmus claude run -- -p "fix the tests"')
def run(
    context: typer.Context,
    model: Model = None,
    small_model: Small = None,
    gateway: GatewayOption = None,
    key: KeyOption = None,
    key_env: KeyEnvOption = None,
    binary: Annotated[str | None, typer.Option(help="The `claude` program; else the installed one.")] = None,
    log: Annotated[Path | None, typer.Option(help="Write the gateway's log here.")] = None,
    config: ConfigFile = None,
) -> None:
    """Start gateway and Claude Code together for one go: `isthmus claude run -- -p "fix the tests"`. With `--gateway`,
    Claude Code alone."""
    from isthmus.cli.beside import log_to, private_settings
    from isthmus.cli.claude_program import doubt, find_claude
    from isthmus.cli.claude_run import run_claude, run_claude_at
    from isthmus.cli.offer import missing_key
    from isthmus.errors import ConfigError

    program = find_claude(binary)
    if trouble := doubt(program):
        say(trouble, "yellow")
    if gateway:
        settings = _ask(gateway, take_key(key, key_env), model, small_model)
        raise typer.Exit(asyncio.run(run_claude_at(program, settings, context.args)))
    # Whoever else is on this machine cannot use this gateway: its only key goes to the program beside it.
    own = secrets.token_urlsafe(24)
    private = private_settings(config, "claude.db", {"server.api_keys": [own], "server.admin_key": ""})
    settings = _from_config(private, "", own, model, small_model)
    if trouble := missing_key(private, settings.model):
        raise ConfigError(trouble)
    log_to(log)
    raise typer.Exit(asyncio.run(run_claude(program, private, settings, context.args)))


def _read_settings(
    path: Path | None, gateway: str | None, key: ShownKey, model: str | None, small: str | None, *, asks: bool
) -> Settings:
    """From a gateway elsewhere, or from the configuration of the one that will run here."""
    from isthmus.cli.claude_keys import NO_KEY
    from isthmus.cli.offer import missing_key
    from isthmus.config import load_config
    from isthmus.errors import ConfigError
    from isthmus.server.listen import public_url

    if gateway:
        return (_ask if asks else _assume)(gateway, key, model, small)
    config = load_config(path).config
    address = public_url(config.server)
    if address.startswith("unix:"):
        raise ConfigError(
            "Claude Code cannot speak to a Unix socket; give the address of a proxy before it with `--gateway`"
        )
    if config.server.api_keys and not key.value:
        raise ConfigError("the gateway wants a key (`server.api_keys`); give one of them with `--key -`")
    settings = _from_config(config, address, key.value or NO_KEY, model, small)
    if trouble := missing_key(config, settings.model):
        say(f"{trouble[:1].upper()}{trouble[1:]}.", "yellow")
    return settings


def _from_config(config: Config, address: str, key: str, model: str | None, small: str | None) -> Settings:
    from isthmus.cli.offer import offer_models

    chosen, models = offer_models(config, model)
    cheap = offer_models(config, small)[0] if small else chosen
    return _settings(address, key, chosen, cheap, models[chosen].context, models[chosen].output)


def _ask(url: str, key: ShownKey, model: str | None, small: str | None) -> Settings:
    from isthmus.cli.claude_keys import NO_KEY
    from isthmus.cli.offer import facts_of

    found = ask_gateway(url, model, key)
    cheap = ask_gateway(url, small, key).model if small else found.model
    listing = found.listing if found.described is None else {"data": [found.described]}
    return _settings(found.base, key.value or NO_KEY, found.model, cheap, *facts_of(listing, found.model))


def _assume(url: str, key: ShownKey, model: str | None, small: str | None) -> Settings:
    """What is written without a word from the gateway: the model that was named, and what is known of it here."""
    from isthmus.cli.claude_keys import NO_KEY
    from isthmus.cli.offer import assume_model
    from isthmus.errors import ConfigError

    if not model:
        raise ConfigError("with `--no-check` nobody is asked for a default model; name one with `--model`")
    known = assume_model(model)
    return _settings(gateway_base(url), key.value or NO_KEY, model, small or model, known.context, known.output)


def _settings(base: str, key: str, model: str, small: str, window: int | None, output: int | None) -> Settings:
    from isthmus.cli.claude_keys import NARROW, Settings, room

    known, longest = room(window, output)
    if known < NARROW:
        say(
            f"`{model}` has a window of {known:,} tokens; Claude Code's own prompt and tools need about 20,000 of it.",
            "yellow",
        )
    return Settings(base, key, model, small, known, longest)


def _tell_what_next(gateway: str | None, key: ShownKey) -> None:
    if gateway is None:
        say("Done. Start the gateway with `isthmus serve`, then `claude`.")
    else:
        say(f"Done. `claude` works with the gateway at `{gateway_base(gateway)}`.")
        if warning := unencrypted(gateway, key):
            say(warning, "yellow")
    where = f" --gateway {gateway_base(gateway)}" if gateway else ""
    say(_DOWN.format(start="start it" if gateway is None else "have it started", where=where))
