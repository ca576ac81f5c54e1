"""`isthmus store stats | prune | export | check`: look after the stored responses and conversations, also while the
gateway runs. Whole stores are moved by `store_moves`."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, TypeVar

import typer

from isthmus.cli import store_moves
from isthmus.cli.help_view import Commands, examples
from isthmus.cli.store_options import ConfigOption, JsonOption, StoreOption, server_limits, store_settings
from isthmus.config.schema import Store as StoreSettings
from isthmus.ports import Store, StoreStats

if TYPE_CHECKING:  # loaded only where it is used
    from isthmus.store.damage import Examined

store_app = Commands(name="store", help="Look after the stored responses.", no_args_is_help=True)

_T = TypeVar("_T")
DAMAGE_LEFT: Final = 3
"""Exit code of a check that found damage and left it: 1 is any error, 2 a wrong option."""


@store_app.command()
@examples("isthmus store stats", "isthmus store stats --store sqlite:/srv/isthmus.db --json")
def stats(
    config: ConfigOption = None,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """How much is stored, and since when."""
    found = with_store(config, store, lambda opened: opened.stats())
    if as_json:
        import msgspec

        typer.echo(msgspec.json.encode(found).decode())
    else:
        typer.echo(_describe(found))


@store_app.command()
@examples("isthmus store prune --days 30", "isthmus store prune --max-size 2GB")
def prune(
    config: ConfigOption = None,
    store: StoreOption = None,
    days: Annotated[float | None, typer.Option(min=0, help="Forget what was not continued for so many days.")] = None,
    max_size: Annotated[str | None, typer.Option(help='Forget the longest unused above this size ("2GB").')] = None,
    conversation_days: Annotated[
        float | None, typer.Option(min=0, help="Forget conversations that nobody used for so many days.")
    ] = None,
) -> None:
    """Forget old responses, and conversations: by the config's limits, or by those given here."""
    from isthmus.errors import ConfigError
    from isthmus.gateway.retention import Retention, prune_once

    settings = store_settings(config, store)
    given = days is not None or max_size is not None or conversation_days is not None
    if given:  # these alone, whatever the configuration says
        size = 0 if max_size is None else _parse_size(max_size)
        rule = Retention(days or 0, size, keep_conversation_days=conversation_days or 0)
    else:
        within = settings.keep_conversation_days
        rule = Retention(settings.keep_days, settings.max_bytes, keep_conversation_days=within)
    if not rule.limited:
        said = "a limit of 0" if given else "`store.keep_days`, `store.max_bytes` and `keep_conversation_days` are 0"
        raise ConfigError(
            f"{said}: that keeps everything, so there is nothing to forget. Fix: give a limit, such as `--days 7`, "
            "`--days 0.01` (a quarter of an hour) or `--max-size 2GB`"
        )
    limits = {"days": days, "max_size": max_size, "conversation_days": conversation_days}
    told = {name: str(value) for name, value in limits.items() if value is not None}
    use = noted(settings, "store.prune", "", lambda opened: prune_once(opened, rule, time.time()), **told)
    pruned = with_store(config, store, use)
    typer.echo(f"forgot {pruned.responses} responses, {pruned.conversations} conversations, {pruned.bytes:,} bytes")


@store_app.command()
@examples("isthmus store export --output responses.jsonl")
def export(
    config: ConfigOption = None,
    store: StoreOption = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="File to write; default: stdout.")] = None,
) -> None:
    """Write every stored response, then every conversation, as one JSON object per line, oldest first."""

    async def write(opened: Store) -> tuple[int, int]:
        counts = [0, 0]
        target = output.open("wb") if output is not None else sys.stdout.buffer
        try:
            for index, lines in enumerate((opened.export(), opened.export_conversations())):
                async for line in lines:
                    target.write(line if line.endswith(b"\n") else line + b"\n")
                    counts[index] += 1
        finally:
            if output is not None:
                target.close()
            else:
                target.flush()
        return counts[0], counts[1]

    responses, conversations = with_store(config, store, write)
    typer.echo(f"exported {responses} responses and {conversations} conversations", err=True)


@store_app.command()
@examples("isthmus store check", "isthmus store check --repair")
def check(
    config: ConfigOption = None,
    store: StoreOption = None,
    repair: Annotated[
        bool, typer.Option("--repair", help="Move what is damaged into the table `quarantine` of the same file.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Compare every stored response and conversation with what was written.

    Exit code 0: all of it is sound, or what was not has been set aside. 3: damage is left. 1: it cannot be examined.
    """
    import msgspec

    from isthmus.store.open import examine_store

    settings = store_settings(config, store)
    examined = examine_store(settings.url, repair=repair, server=server_limits(settings))
    if as_json:
        typer.echo(msgspec.json.encode({"sound": examined.sound, **msgspec.to_builtins(examined)}).decode())
    else:
        for each in examined.damage:
            done = " (set aside)" if each.set_aside else ""
            typer.echo(f"{each.kind:<14}{each.id or '-'}: {each.reason}{done}")
        counted = f"{examined.responses:,} responses, {examined.conversations:,} conversations"
        typer.echo(f"examined {counted}: {_verdict(examined)}")
    if set_aside := sum(each.set_aside for each in examined.damage):
        from isthmus.cli.deeds import note_afterwards

        note_afterwards(settings, "store.repair", set_aside=str(set_aside))
    if not examined.sound:
        raise typer.Exit(DAMAGE_LEFT)


for command in (store_moves.migrate, store_moves.copy, store_moves.backup, store_moves.restore):
    store_app.command()(command)


def _parse_size(text: str) -> int:
    from isthmus.errors import ConfigError
    from isthmus.values.quantities import parse_size

    try:
        return parse_size(text)
    except ValueError as error:
        raise ConfigError(f"`--max-size {text}` must be {error}") from error


def with_store(config: Path | None, url: str | None, use: Callable[[Store], Awaitable[_T]]) -> _T:
    """What `use` makes of the store, which must be there: looking at it must not make one."""
    from isthmus.store.open import check_there, open_store

    settings = store_settings(config, url)
    limits = server_limits(settings)
    check_there(settings.url, server=limits)

    async def main() -> _T:
        opened = open_store(settings.url, durability=settings.durability, server=limits)
        try:
            return await use(opened)
        finally:
            await opened.aclose()

    return asyncio.run(main())


def noted(
    settings: StoreSettings, action: str, target: str, use: Callable[[Store], Awaitable[_T]], **details: str
) -> Callable[[Store], Awaitable[_T]]:
    """The same, noted before it is done: what cannot be noted is not done."""

    async def note_and_use(opened: Store) -> _T:
        from isthmus.cli.deeds import keeper_of

        await keeper_of(opened, settings).note(action, target, **details)
        return await use(opened)

    return note_and_use


def _verdict(examined: Examined) -> str:
    if not examined.damage:
        return "all of them are as they were written"
    if examined.sound:
        return "what was damaged is set aside, all others are as they were written"
    if any(each.kind == "file" for each in examined.damage):
        return "the file itself is damaged; restore a backup, or save what can be read with `isthmus store export`"
    return "run `isthmus store check --repair` to set the damaged ones aside"


def _describe(found: StoreStats) -> str:
    lines = {
        "responses": f"{found.responses:,}",
        "unfinished": f"{found.unfinished:,}",
        "deleted": f"{found.deleted:,} (their ids are remembered)",
        "conversations": f"{found.conversations:,} ({found.conversation_items:,} items)",
        "pieces": f"{found.pieces:,} (shared items are counted once)",
        "size": f"{found.bytes:,} bytes",
        "oldest": _when(found.oldest),
        "newest": _when(found.newest),
    }
    return "\n".join(f"{name:<15}{value}" for name, value in lines.items())


def _when(moment: float | None) -> str:
    return "-" if moment is None else datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
