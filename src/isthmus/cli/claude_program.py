"""The `claude` program: where it is, and whether it is one that this gateway was tried with."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Final

from isthmus.errors import ConfigError

TRIED: Final = "2.1.325"
"""What `make test-claude` runs."""
OLDEST: Final = (2, 1)
HOW_TO_GET_IT: Final = "install it with `npm install -g @anthropic-ai/claude-code`"

_PLACES: Final = ("~/.local/bin/claude", "~/.claude/local/claude")
"""Where its own installers put it, on the PATH or not."""
_PATIENCE: Final = 30.0


def find_claude(setting: str | None) -> Path:
    """`--binary`, else `claude` on the PATH, else where its installers put it."""
    if setting:
        found = shutil.which(setting)
        if found is None:
            raise ConfigError(f"`{setting}` is not an executable file; give the path of `claude`")
        return Path(found).absolute()
    found = shutil.which("claude") or next(filter(None, (shutil.which(Path(p).expanduser()) for p in _PLACES)), None)
    if found is None:
        raise ConfigError(f"no `claude` program found; {HOW_TO_GET_IT}, or name it with `--binary`")
    return Path(found).absolute()


def version_of(program: Path) -> str | None:
    """`None`: it does not answer like Claude Code."""
    try:
        told = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=_PATIENCE, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ConfigError(f"`{program}` does not run: {error}; {HOW_TO_GET_IT}") from error
    found = re.match(r"\d+\.\d+\.\d+", told.stdout)
    return found[0] if found else None


def doubt(program: Path) -> str | None:
    """What is worth knowing about this version before it runs; `None`: nothing."""
    return judge(program, version_of(program))


def judge(program: Path, version: str | None) -> str | None:
    if version is None:
        return f"`{program} --version` does not answer like Claude Code; it may not understand what it is told."
    if tuple(map(int, version.split(".")))[:2] < OLDEST:
        return f"Claude Code {version} is older than what Isthmus was tried with ({TRIED}): `claude update`."
    return None
