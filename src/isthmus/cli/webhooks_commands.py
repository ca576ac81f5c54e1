"""`isthmus webhooks list | retry | forget`: look after deliveries that wait or were given up, also while gateways
run."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from rich.console import Console, Group
from rich.text import Text

from isthmus.cli.help_view import OUTPUT, Commands, examples
from isthmus.cli.layout import show_table
from isthmus.cli.store_commands import noted, with_store
from isthmus.cli.store_options import ConfigOption, StoreOption, store_settings
from isthmus.cli.terminal import clean, lined_table, open_console
from isthmus.errors import ConfigError
from isthmus.ports import Delivery

webhooks_app = Commands(name="webhooks", help="Look after deliveries to webhooks.", no_args_is_help=True)

IdArgument = Annotated[str | None, typer.Argument(help="Which one, by its `webhook-id`.")]


@webhooks_app.command(name="list")
@examples("isthmus webhooks list", "isthmus webhooks list --json")
def list_deliveries(
    config: ConfigOption = None,
    store: StoreOption = None,
    most: Annotated[int, typer.Option(min=1, help="How many, at the most.")] = 1000,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object per line.", rich_help_panel=OUTPUT)] = False,
) -> None:
    """Show deliveries that were given up, and those that wait. What was delivered is not kept."""
    found = with_store(config, store, lambda opened: opened.deliveries(most=most))
    console = open_console()
    if found and console.is_terminal and not as_json:
        _show(console, found)
        return
    for delivery in found:
        typer.echo(_as_json(delivery) if as_json else _as_line(delivery))
    if not found and not as_json:
        typer.echo("nothing waits, and nothing was given up")


@webhooks_app.command()
@examples("isthmus webhooks retry --all")
def retry(
    id: IdArgument = None,
    config: ConfigOption = None,
    store: StoreOption = None,
    every: Annotated[bool, typer.Option("--all", help="All that were given up.")] = False,
) -> None:
    """Send a delivery again as if it were new, or all that were given up. A running gateway does it, within seconds."""
    _choose_one(id, every)
    use = noted(store_settings(config, store), "webhook.retry", id or "all", lambda opened: opened.deliver_again(id))
    count = with_store(config, store, use)
    _say_count(count, id, "to be sent again")


@webhooks_app.command()
@examples("isthmus webhooks forget --all")
def forget(
    id: IdArgument = None,
    config: ConfigOption = None,
    store: StoreOption = None,
    every: Annotated[bool, typer.Option("--all", help="All that were given up.")] = False,
) -> None:
    """Forget a delivery, or all that were given up: its receiver will never hear of it."""
    _choose_one(id, every)
    settings = store_settings(config, store)
    use = noted(settings, "webhook.forget", id or "all", lambda opened: opened.forget_deliveries(id))
    count = with_store(config, store, use)
    _say_count(count, id, "forgotten")


def _choose_one(id: str | None, every: bool) -> None:
    if (id is None) != every:
        raise ConfigError("name one delivery by its id, or say `--all` for all that were given up")


def _say_count(count: int, id: str | None, what: str) -> None:
    if id is not None and not count:
        raise ConfigError(f"no delivery `{id}` waits or was given up; it may be under way: `isthmus webhooks list`")
    typer.echo(f"{count} {what}")


def _show(console: Console, deliveries: list[Delivery]) -> None:
    table = lined_table("state", "delivery")
    for delivery in deliveries:
        notice, state = delivery.notice, "given up" if delivery.given_up else "waiting"
        told = f"attempts {delivery.attempts}" + (f": {delivery.reason}" if delivery.reason else "")
        about = (notice.id, f"{notice.endpoint}  {notice.type}  {notice.about}", told)
        table.add_row(Text(state, "yellow" if delivery.given_up else "", no_wrap=True), Group(*map(_plain, about)))
    show_table(console, table, indent=0)


def _plain(text: str) -> Text:
    return Text(clean(text))


def _as_line(delivery: Delivery) -> str:
    notice, reason = delivery.notice, f": {delivery.reason}" if delivery.reason else ""
    told = f"{notice.id}  {notice.endpoint}  {notice.type}  {notice.about}  attempts {delivery.attempts}"
    return f"{'given up' if delivery.given_up else 'waiting ':<9} {told}{reason}"


def _as_json(delivery: Delivery) -> str:
    import msgspec

    notice = delivery.notice
    shown: dict[str, Any] = {
        "id": notice.id,
        "state": "given_up" if delivery.given_up else "waiting",
        "endpoint": notice.endpoint,
        "type": notice.type,
        "response": notice.about,
        "owner": notice.owner,
        "attempts": delivery.attempts,
        "queued_seconds_ago": round(delivery.age, 1),
        "due_in_seconds": None if delivery.given_up else round(delivery.due, 1),
        "reason": delivery.reason or None,
    }
    return msgspec.json.encode(shown).decode()
