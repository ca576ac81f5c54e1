"""`isthmus codex`: let the Codex CLI work with any model, for good (`setup`) or for one go (`run`)."""

from __future__ import annotations

import asyncio
import logging
import os
import shlex
import sys
from pathlib import Path
from typing import Annotated, Final

import msgspec
import typer
from rich.text import Text

from isthmus.cli.codex_daemon import STOP, daemon_runs
from isthmus.cli.codex_files import Change, carry_out, diff_lines
from isthmus.cli.terminal import open_console, plural, words
from isthmus.log import TextFormatter
from isthmus.observe.outlet import Outlet
from isthmus.protocol.json import JsonObject

codex_app = typer.Typer(name="codex", help="Use the Codex CLI with any model.", no_args_is_help=True)

Model = Annotated[str | None, typer.Option(help="Alias, or `provider/model`; else the default model.")]
ConfigFile = Annotated[Path | None, typer.Option(help="Config file of the gateway (TOML).")]

_UNDONE: Final = "Our settings are out again; what you and Codex have set since then stays."


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
    websockets: Annotated[
        bool, typer.Option("--websockets", help="Have Codex keep one WebSocket for a conversation.")
    ] = False,
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
        base, chosen, catalogue = _read_offer(config, url, model, os.environ.get(key_env or "", ""))
        settings = Settings(f"{base}/v1", chosen, str(home / CATALOGUE), key_env, websockets)
        changes = plan_setup(home, settings, catalogue, profile)
    if not changes:
        _say("Nothing to undo." if undo else "Codex is set up already; nothing to change.")
        _tell_of_daemon(home, command)
        return
    _show(changes)
    if dry_run:
        return
    if not yes:
        _ask()
    carry_out(changes)
    start = f"codex -p {profile}" if profile else "codex"
    _say(_UNDONE if undo else f"Done. Start the gateway with `isthmus serve`, then `{start}`.")
    _tell_of_daemon(home, command)


@codex_app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def run(
    context: typer.Context,
    model: Model = None,
    binary: Annotated[str | None, typer.Option(help="The `codex` program; else the installed one.")] = None,
    log: Annotated[Path | None, typer.Option(help="Write the gateway's log here.")] = None,
    config: ConfigFile = None,
) -> None:
    """Start gateway and Codex together for one go: `isthmus codex run -- exec "fix the tests"`."""
    from isthmus.cli.codex_models import offer_models
    from isthmus.cli.codex_run import run_codex
    from isthmus.config import load_config
    from isthmus.upstream.codex.options import find_binary

    program = find_binary(binary)
    store = load_config(config).config.store.url
    settings = load_config(config, overrides={**_PRIVATE_SERVER, "store.url": _own_store(store)}).config
    chosen, catalogue = offer_models(settings, model)
    _log_to(log)
    raise typer.Exit(asyncio.run(run_codex(program, settings, chosen, catalogue, context.args)))


_PRIVATE_SERVER: Final = {
    "server.host": "127.0.0.1",
    "server.port": 0,
    "server.unix_socket": "",
    "server.tls_cert": "",
    "server.tls_key": "",
    "server.path_prefix": "",
}
"""A gateway for one go: only its own Codex speaks to it, however the one for everybody is reached."""


def _read_offer(config: Path | None, url: str | None, model: str | None, key: str) -> tuple[str, str, JsonObject]:
    """Address, model and catalogue, from a running gateway, which may want a key, or from the configuration."""
    from isthmus.cli.codex_models import ask_gateway, offer_models
    from isthmus.config import load_config
    from isthmus.errors import ConfigError
    from isthmus.server.listen import public_url

    if url:
        return ask_gateway(url, model, key)
    settings = load_config(config).config
    address = public_url(settings.server)
    if address.startswith("unix:"):
        raise ConfigError("Codex cannot speak to a Unix socket; give the address of a proxy before it with `--url`")
    return address, *offer_models(settings, model)


def _ask() -> None:
    """Enter is yes; `n`, the end of a pipe and ^C are no."""
    try:
        if typer.confirm("Write this?", default=True, err=True):
            return
        answer = "Nothing was written."
    except typer.Abort:
        answer = "Nothing was written; use `--yes` where nobody can answer."
    if not sys.stdin.isatty():
        _say("")  # nobody has pressed Enter behind the question
    _say(answer)
    raise typer.Exit(1)


def _tell_of_daemon(home: Path, command: str) -> None:
    """The command stands on a line of its own, so that it can be copied from a terminal of any width."""
    if daemon_runs(home):
        _say("A Codex daemon is running and keeps the settings that it started with. End it:", "yellow")
        _say(f"  `{command}`")


def _own_store(url: str) -> str:
    """A file of its own beside the gateway's, so that a running gateway is not disturbed; its key outlives the run."""
    prefix, file = "sqlite:", url.removeprefix("sqlite:")
    return url if file == url or ":memory:" in file else f"{prefix}{Path(file).with_name('codex.db')}"


def _log_to(file: Path | None) -> None:
    root = logging.getLogger("isthmus")
    handler = Outlet(file.open("a")) if file is not None else logging.NullHandler()
    handler.setFormatter(TextFormatter())
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


def _say(sentence: str, style: str = "") -> None:
    open_console(stderr=True).print(words(sentence, style), soft_wrap=True)
