"""Where the configuration file is, and the user's own folders.

Searched in this order: the `--config` flag, `$ISTHMUS_CONFIG`, `isthmus.toml` in the working folder, `isthmus.toml` in
the user's config folder. A file that was named must exist; of the others the first that exists is taken, and none
at all is fine.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from isthmus.errors import ConfigError

FILE_NAME: Final = "isthmus.toml"


def find_config(path: Path | str | None, environ: Mapping[str, str], cwd: Path) -> Path | None:
    """The file to read, or `None` to go on with defaults and the environment."""
    for named, by in ((path, "`--config`"), (environ.get("ISTHMUS_CONFIG"), "`$ISTHMUS_CONFIG`")):
        if named:
            return _existing(cwd / Path(named).expanduser(), by)
    for candidate in (cwd / FILE_NAME, config_folder(environ) / FILE_NAME):
        if candidate.is_file():
            return candidate
    return None


def config_folder(environ: Mapping[str, str], platform: str = sys.platform) -> Path:
    """`$XDG_CONFIG_HOME/isthmus`, or the platform's own place."""
    return _user_folder(environ, platform, "XDG_CONFIG_HOME", "APPDATA", ".config")


def own_provider_folders(environ: Mapping[str, str]) -> tuple[Path, ...]:
    """The folder for the user's own provider files, if there is one."""
    folder = config_folder(environ) / "providers"
    return (folder,) if folder.is_dir() else ()


def data_folder(environ: Mapping[str, str], platform: str = sys.platform) -> Path:
    """`$XDG_DATA_HOME/isthmus`, or the platform's own place."""
    return _user_folder(environ, platform, "XDG_DATA_HOME", "LOCALAPPDATA", ".local/share")


def _existing(path: Path, by: str) -> Path:
    found = path / FILE_NAME if path.is_dir() else path
    if not found.is_file():
        raise ConfigError(
            f"the configuration file `{found}` named by {by} does not exist. "
            "Fix: correct the path, or make the file with `isthmus init`",
            code="config_not_found",
        )
    return found


def _user_folder(environ: Mapping[str, str], platform: str, xdg: str, windows: str, home: str) -> Path:
    # The XDG specification says that a relative path there is to be ignored.
    if (named := environ.get(xdg)) and Path(named).is_absolute():
        return Path(named) / "isthmus"
    if platform == "win32" and (named := environ.get(windows)):
        return Path(named) / "isthmus"
    return Path(environ.get("HOME") or Path.home()) / home / "isthmus"
