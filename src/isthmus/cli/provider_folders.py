"""Where the commands look for a user's own provider files: as the gateway would, then what the flag adds."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from isthmus.config import read_config
from isthmus.errors import ConfigError

FolderFlag = Annotated[
    list[Path] | None,
    typer.Option("--folder", metavar="DIR", help="A folder with provider files of your own; repeatable."),
]


def provider_folders(given: Sequence[Path] | None) -> tuple[Path, ...]:
    """Weakest first: the user's own folder, those of the configuration, those of the flag."""
    for folder in given or ():
        if not folder.is_dir():
            raise ConfigError(f"`--folder {folder}` is not a folder; name one that holds `*.toml` provider files")
    configured = (Path(folder) for folder in read_config().config.provider_folders)
    return tuple(dict.fromkeys((*configured, *(given or ()))))
