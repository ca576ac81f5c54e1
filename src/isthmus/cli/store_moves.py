"""`isthmus store migrate | copy | backup | restore`: whole stores, from one place to another."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from isthmus.cli.help_view import examples
from isthmus.cli.store_options import ConfigOption, JsonOption, StoreOption, server_limits, store_settings
from isthmus.errors import ConfigError

if TYPE_CHECKING:  # loaded only where it is used
    from isthmus.store.copying.copy import Manner


@examples("isthmus store migrate --dry-run")
def migrate(
    config: ConfigOption = None,
    store: StoreOption = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be done, and do nothing.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Bring the store up to date, as every start of a gateway does, and say which steps that took."""
    from isthmus.cli.terminal import print_json
    from isthmus.store.copying.stores import migrate_store

    settings = store_settings(config, store)
    steps = migrate_store(settings.url, dry_run=dry_run, server=server_limits(settings))
    if as_json:
        print_json({"pending" if dry_run else "applied": steps}, pretty=False)
    elif not steps:
        typer.echo("up to date")
    else:
        typer.echo(f"{'would apply' if dry_run else 'applied'} {', '.join(steps)}")


@examples("isthmus store copy --from sqlite:isthmus.db --to postgresql://host/db")
def copy(
    source: Annotated[str, typer.Option("--from", help="The store to read: `sqlite:PATH` or `postgresql://…`.")],
    target: Annotated[str, typer.Option("--to", help="The store to write; it is made where there is none.")],
    config: ConfigOption = None,
    force: Annotated[bool, typer.Option("--force", help="Replace all that the target holds.")] = False,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with a copy that was broken off, or bring what has come since.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Copy everything that a store holds to another one, with the key of its envelopes, and compare both.

    The source is read as of one moment, also while a gateway uses it. Nobody may use the target meanwhile.
    """
    import msgspec

    from isthmus.cli.progress import Progress
    from isthmus.cli.terminal import print_json
    from isthmus.store.copying.stores import copy_store

    if force and resume:
        raise ConfigError("`--force` begins anew and `--resume` goes on: give one of them")
    manner: Manner = "force" if force else "resume" if resume else "new"
    with Progress(silent=as_json) as progress:
        limits = server_limits(store_settings(config, None))
        done = copy_store(source, target, manner=manner, told=progress, server=limits)
    if as_json:
        print_json(msgspec.to_builtins(done), pretty=False)
        return
    typer.echo(
        f"copied {done.rows:,} rows of {len(done.tables)} tables, {done.bytes:,} bytes ({done.written:,} written)"
    )
    typer.echo("compared: every table of the target has the same rows")
    if not done.envelope_key:
        _say_no_key()


@examples("isthmus store backup /backups/isthmus.db")
def backup(
    path: Annotated[Path, typer.Argument(help="Where the copy goes; its key goes beside it, as `PATH.key`.")],
    config: ConfigOption = None,
    store: StoreOption = None,
    force: Annotated[bool, typer.Option("--force", help="Replace a copy that is there already.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Copy the store as it is at this moment to one file, with the key of its envelopes."""
    import msgspec

    from isthmus.cli.progress import Progress
    from isthmus.cli.terminal import print_json
    from isthmus.store.copying.stores import back_up_store

    settings = store_settings(config, store)
    with Progress(silent=as_json) as progress:
        made = back_up_store(settings.url, path, force=force, told=progress, server=server_limits(settings))
    if as_json:
        print_json(msgspec.to_builtins(made, enc_hook=str), pretty=False)
        return
    counted = f"{made.responses:,} responses, {made.conversations:,} conversations"
    typer.echo(f"copied {counted}, {made.bytes:,} bytes, to {path}")
    if made.key is None:
        _say_no_key()
    else:
        typer.echo(f"copied the key to {made.key}")


@examples("isthmus store restore /backups/isthmus.db")
def restore(
    path: Annotated[Path, typer.Argument(help="The copy that `isthmus store backup` made, with `PATH.key` beside it.")],
    config: ConfigOption = None,
    store: StoreOption = None,
    force: Annotated[bool, typer.Option("--force", help="Replace all that the store holds now.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Put a copy in the place of the store, after every part of the copy was compared with what was written.

    Stop the gateways first: what they hold in memory is of the old store.
    """
    import msgspec

    from isthmus.cli.deeds import note_afterwards
    from isthmus.cli.progress import Progress
    from isthmus.cli.terminal import print_json
    from isthmus.store.copying.stores import restore_store

    settings = store_settings(config, store)
    with Progress(silent=as_json) as progress:
        done = restore_store(path, settings.url, force=force, told=progress, server=server_limits(settings))
    note_afterwards(settings, "store.restore", path.name, responses=str(done.responses))
    if as_json:
        print_json(msgspec.to_builtins(done, enc_hook=str), pretty=False)
        return
    typer.echo(f"restored {done.responses:,} responses, {done.conversations:,} conversations from {path}")
    if done.key is None:
        _say_no_key()


def _say_no_key() -> None:
    typer.echo("there was no key beside the store; what clients carry from it will not open elsewhere", err=True)
