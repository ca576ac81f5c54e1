"""What the commands of `isthmus store` have in common: which store is meant."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from isthmus.cli.help_view import OUTPUT, WHERE
from isthmus.config.schema import Store as StoreSettings

if TYPE_CHECKING:  # loaded only where it is used
    from isthmus.store.open import ServerLimits

ConfigOption = Annotated[
    Path | None,
    typer.Option("--config", "-c", metavar="FILE", help="Config file (TOML).", rich_help_panel=WHERE),
]
StoreOption = Annotated[
    str | None,
    typer.Option(
        "--store",
        metavar="URL",
        help="`sqlite:PATH` or `postgresql://…`, in place of the config's store.",
        rich_help_panel=WHERE,
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="One JSON object.", rich_help_panel=OUTPUT)]


def store_settings(config: Path | None, url: str | None) -> StoreSettings:
    """The store's own section: a provider without its key is no reason to keep a person from the stored responses."""
    from isthmus.config import read_config
    from isthmus.values.problems import as_error

    reading = read_config(config, overrides={"store.url": url})
    troubles = [problem for problem in reading.errors if problem.key[:1] == ("store",)]
    if troubles:
        raise as_error(troubles)
    return reading.config.store


def server_limits(settings: StoreSettings) -> ServerLimits:
    """What of it concerns a store that is a server."""
    from isthmus.bridge.limits import take_limits
    from isthmus.store.open import ServerLimits

    return take_limits(ServerLimits, settings)
