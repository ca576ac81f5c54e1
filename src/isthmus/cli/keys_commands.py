"""`isthmus keys create | list | show | change | rotate | revoke`: who may ask, on the store itself, also while gateways
run: they hear of it within a second."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Annotated

import typer

from isthmus.access.keeper import Made
from isthmus.access.told import status_of, tell_key
from isthmus.access.wishes import Wishes
from isthmus.cli.help_view import OUTPUT, Commands, examples
from isthmus.cli.key_options import SCOPE, Wished, read_duration, wishing
from isthmus.cli.key_store import with_keeper
from isthmus.cli.keys_view import show_key, show_keys
from isthmus.cli.store_options import ConfigOption, StoreOption
from isthmus.cli.terminal import open_console, print_json
from isthmus.errors import ConfigError

keys_app = Commands(name="keys", help="Look after the keys that clients show.", no_args_is_help=True)

NameArgument = Annotated[str, typer.Argument(help="Its name, its id (`key_…`), or how it begins (`ik_…`).")]
JsonOption = Annotated[bool, typer.Option("--json", help="One JSON object.", rich_help_panel=OUTPUT)]


@keys_app.command()
@examples(
    "isthmus keys create ann",
    "isthmus keys create ci --team search --models 'deepseek/*' --daily-budget 5",
)
@wishing
def create(
    name: Annotated[str, typer.Argument(help="What people call it.")],
    wishes: Wished,
    config: ConfigOption = None,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Make a key, and show it this once. From then on every request must show one."""
    made = with_keeper(config, store, lambda keeper, _: keeper.create(wishes(name=name)), make=True)
    _tell_made(made, "created", as_json)


@keys_app.command(name="list")
@examples("isthmus keys list", "isthmus keys list --all --team search")
def list_keys(
    config: ConfigOption = None,
    store: StoreOption = None,
    every: Annotated[bool, typer.Option("--all", help="Also those that were revoked or are out of date.")] = False,
    team: Annotated[str | None, typer.Option(help="Of one team only.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object per line.", rich_help_panel=OUTPUT)] = False,
) -> None:
    """Show the keys in force, the oldest first."""
    now = time.time()
    found = with_keeper(config, store, lambda keeper, _: keeper.list())
    chosen = [key for key in found if (every or key.in_force(now)) and team in (None, key.team)]
    if as_json:
        for key in chosen:
            print_json(tell_key(key, now), pretty=False)
    elif chosen:
        show_keys(open_console(), chosen, now)
    else:
        left = "" if every or not found else "; `--all` shows those that were revoked or are out of date"
        typer.echo(f"no keys{left}" if found else "no keys; make one with `isthmus keys create NAME`", err=True)


@keys_app.command()
@examples("isthmus keys show ann")
def show(
    key: NameArgument, config: ConfigOption = None, store: StoreOption = None, as_json: JsonOption = False
) -> None:
    """Show what a key opens. The key itself is kept nowhere."""
    now = time.time()
    found = with_keeper(config, store, lambda keeper, _: keeper.find(key))
    if as_json:
        print_json(tell_key(found, now))
    else:
        show_key(open_console(), found, now)


@keys_app.command()
@examples("isthmus keys change ann --models fast --daily-budget 10", "isthmus keys change ann --expires never")
@wishing
def change(
    key: NameArgument,
    wishes: Wished,
    name: Annotated[str | None, typer.Option(help="Another name.", rich_help_panel=SCOPE)] = None,
    config: ConfigOption = None,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Change what a key opens; what is not named stays as it is. Metadata is replaced as a whole."""
    wished = wishes(name=name)
    if wished == Wishes():
        raise ConfigError("say what is to change, for example `--models deepseek/*`; `--help` lists it all")
    changed = with_keeper(config, store, lambda keeper, _: keeper.change(key, wished))
    if as_json:
        print_json(tell_key(changed, time.time()))
    else:
        show_key(open_console(), changed, time.time())


@keys_app.command()
@examples("isthmus keys rotate ann --grace 24h")
def rotate(
    key: NameArgument,
    config: ConfigOption = None,
    store: StoreOption = None,
    grace: Annotated[
        str, typer.Option(help="How long the key before opens as well: `24h`, `7d`; 0: not at all.")
    ] = "0",
    as_json: JsonOption = False,
) -> None:
    """Change a key for a new one, and show it this once. Whatever was made with it stays its own."""
    seconds = read_duration("--grace", grace)
    made = with_keeper(config, store, lambda keeper, _: keeper.rotate(key, seconds))
    _tell_made(made, "rotated", as_json)


@keys_app.command()
@examples("isthmus keys revoke ann")
def revoke(
    key: NameArgument, config: ConfigOption = None, store: StoreOption = None, as_json: JsonOption = False
) -> None:
    """Refuse a key from now on, in every gateway on this store within a second. That cannot be undone."""
    revoked = with_keeper(config, store, lambda keeper, _: keeper.revoke(key))
    if as_json:
        print_json(tell_key(revoked, time.time()))
    else:
        typer.echo(f"revoked {revoked.prefix}… `{revoked.name}` ({revoked.id})")


def _tell_made(made: Made, deed: str, as_json: bool) -> None:
    """The key is for pipes, what is said about it for people."""
    key, now = made.key, time.time()
    if as_json:
        print_json({**tell_key(key, now), "key": made.secret})
        return
    team = f" of team `{key.team}`" if key.team else ""
    typer.echo(f"{deed} `{key.name}` ({key.id}){team}; keep this key, it is not shown again:", err=True)
    typer.echo(made.secret)
    if key.previous and status_of(key, now) == "active":
        until = datetime.fromtimestamp(key.previous_until, UTC).strftime("%Y-%m-%d %H:%M UTC")
        typer.echo(f"the key before opens until {until}", err=True)
    typer.echo(f"use it as  OPENAI_API_KEY={made.secret}", err=True)
    typer.echo(f"       or  ANTHROPIC_API_KEY={made.secret}", err=True)
