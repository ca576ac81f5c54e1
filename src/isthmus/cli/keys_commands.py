"""`isthmus keys create | list | show | change | rotate | revoke`: who may ask, on the store itself, also while gateways
run: they hear of it within a second."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Annotated, Any, Final

import typer

from isthmus.access.keeper import Made
from isthmus.access.told import status_of, tell_key
from isthmus.access.wishes import Wishes, read_wishes
from isthmus.cli.help_view import Commands
from isthmus.cli.key_store import with_keeper
from isthmus.cli.keys_view import show_key, show_keys
from isthmus.cli.store_options import ConfigOption, StoreOption
from isthmus.cli.terminal import open_console, print_json
from isthmus.errors import ConfigError
from isthmus.values.quantities import parse_duration

keys_app = Commands(name="keys", help="Look after the keys that clients show.", no_args_is_help=True)

_ALL: Final = "all"
_NONE: Final = "none"
_NEVER: Final = "never"

NameArgument = Annotated[str, typer.Argument(help="Its name, its id (`key_…`), or how it begins (`ik_…`).")]
JsonOption = Annotated[bool, typer.Option("--json", help="One JSON object.")]
TeamOption = Annotated[str | None, typer.Option(help="Team whose responses, limits and budget it shares.")]
ModelsOption = Annotated[
    list[str] | None, typer.Option(help="Models it may use, as `deepseek/*,fast`; `all` for any. Repeatable.")
]
EndpointsOption = Annotated[
    list[str] | None, typer.Option(help="Endpoints it opens, as `responses,chat,models`; `all` for any. Repeatable.")
]
ToolsOption = Annotated[
    list[str] | None,
    typer.Option(help="Tools that run here, as `web_search,mcp:docs`; `all`, or `none`. Repeatable."),
]
AdminOption = Annotated[bool | None, typer.Option("--admin/--no-admin", help="Whether it opens what operators do.")]
ExpiresOption = Annotated[str | None, typer.Option(help="When it ends: `30d`, `12h`, `2027-01-31`, or `never`.")]
CountOption = Annotated[int | None, typer.Option(min=0, help="0: no limit of its own.")]
MoneyOption = Annotated[float | None, typer.Option(min=0, help="US dollars; 0: no limit of its own.")]
MetadataOption = Annotated[list[str] | None, typer.Option(help="`NAME=VALUE`, for your own lists. Repeatable.")]


@keys_app.command()
def create(
    name: Annotated[str, typer.Argument(help="What people call it.")],
    config: ConfigOption = None,
    store: StoreOption = None,
    team: TeamOption = None,
    models: ModelsOption = None,
    endpoints: EndpointsOption = None,
    tools: ToolsOption = None,
    admin: AdminOption = None,
    expires: ExpiresOption = None,
    requests_per_minute: CountOption = None,
    tokens_per_minute: CountOption = None,
    concurrent_requests: CountOption = None,
    concurrent_streams: CountOption = None,
    daily_budget: MoneyOption = None,
    monthly_budget: MoneyOption = None,
    metadata: MetadataOption = None,
    as_json: JsonOption = False,
) -> None:
    """Make a key, and show it this once. From then on every request must show one."""
    wishes = _wishes(
        name=name,
        team=team,
        models=_listed(models),
        endpoints=_listed(endpoints),
        tools=_tools(tools),
        admin=admin,
        requests_per_minute=requests_per_minute,
        tokens_per_minute=tokens_per_minute,
        concurrent_requests=concurrent_requests,
        concurrent_streams=concurrent_streams,
        daily_budget=daily_budget,
        monthly_budget=monthly_budget,
        metadata=_pairs(metadata),
        **_expiry(expires),
    )
    made = with_keeper(config, store, lambda keeper, _: keeper.create(wishes), make=True)
    _tell_made(made, "created", as_json)


@keys_app.command(name="list")
def list_keys(
    config: ConfigOption = None,
    store: StoreOption = None,
    every: Annotated[bool, typer.Option("--all", help="Also those that were revoked or are out of date.")] = False,
    team: Annotated[str | None, typer.Option(help="Of one team only.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object per line.")] = False,
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
def change(
    key: NameArgument,
    config: ConfigOption = None,
    store: StoreOption = None,
    name: Annotated[str | None, typer.Option(help="Another name.")] = None,
    team: TeamOption = None,
    models: ModelsOption = None,
    endpoints: EndpointsOption = None,
    tools: ToolsOption = None,
    admin: AdminOption = None,
    expires: ExpiresOption = None,
    requests_per_minute: CountOption = None,
    tokens_per_minute: CountOption = None,
    concurrent_requests: CountOption = None,
    concurrent_streams: CountOption = None,
    daily_budget: MoneyOption = None,
    monthly_budget: MoneyOption = None,
    metadata: MetadataOption = None,
    as_json: JsonOption = False,
) -> None:
    """Change what a key opens; what is not named stays as it is. Metadata is replaced as a whole."""
    wishes = _wishes(
        name=name,
        team=team,
        models=_listed(models),
        endpoints=_listed(endpoints),
        tools=_tools(tools),
        admin=admin,
        requests_per_minute=requests_per_minute,
        tokens_per_minute=tokens_per_minute,
        concurrent_requests=concurrent_requests,
        concurrent_streams=concurrent_streams,
        daily_budget=daily_budget,
        monthly_budget=monthly_budget,
        metadata=_pairs(metadata),
        **_expiry(expires),
    )
    if wishes == Wishes():
        raise ConfigError("say what is to change, for example `--models deepseek/*`; `--help` lists it all")
    changed = with_keeper(config, store, lambda keeper, _: keeper.change(key, wishes))
    if as_json:
        print_json(tell_key(changed, time.time()))
    else:
        show_key(open_console(), changed, time.time())


@keys_app.command()
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
    seconds = _duration("--grace", grace)
    made = with_keeper(config, store, lambda keeper, _: keeper.rotate(key, seconds))
    _tell_made(made, "rotated", as_json)


@keys_app.command()
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


def _wishes(**fields: Any) -> Wishes:
    return read_wishes({name: _meant(value) for name, value in fields.items() if value is not None})


def _meant(value: Any) -> Any:
    return None if value is _ANY else value


_ANY: Final = object()
"""Said in so many words: not narrowed, or without an end."""


def _listed(given: list[str] | None) -> Any:
    if given is None:
        return None
    words = [word.strip() for each in given for word in each.split(",") if word.strip()]
    return _ANY if words == [_ALL] else words


def _tools(given: list[str] | None) -> Any:
    words = _listed(given)
    return [] if words == [_NONE] else words


def _pairs(given: list[str] | None) -> dict[str, str] | None:
    if given is None:
        return None
    if unfit := next((each for each in given if not each.partition("=")[1]), None):
        raise ConfigError(f"`--metadata {unfit}` must be `NAME=VALUE`")
    return dict(each.split("=", 1) for each in given)


def _expiry(given: str | None) -> dict[str, Any]:
    if given is None:
        return {}
    if given == _NEVER:
        return {"expires_at": _ANY}
    try:
        day = datetime.fromisoformat(given)
    except ValueError:
        return {"expires_in": _duration("--expires", given)}
    return {"expires_at": (day if day.tzinfo else day.replace(tzinfo=UTC)).timestamp()}


def _duration(option: str, text: str) -> float:
    try:
        return parse_duration(text)
    except ValueError as error:
        more = ", a day such as `2027-01-31`, or `never`" if option == "--expires" else ""
        raise ConfigError(f"`{option} {text}` must be {error}{more}") from error
