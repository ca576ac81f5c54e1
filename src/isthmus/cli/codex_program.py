"""The `codex` program: where it is, which version, and what to type where no command of that name is on the PATH."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Final

from isthmus.errors import ConfigError
from isthmus.upstream.codex.options import find_binary

TRIED: Final = "0.166"
"""The newest that the gateway was tried with."""
OLDEST: Final = (0, 163)
HOW_TO_GET_IT: Final = "install it with `pip install openai-codex-cli-bin` or `npm install -g @openai/codex`"

_PATIENCE: Final = 30.0


def how_to_start() -> tuple[str, ...]:
    """What to say after a setup that ends in `codex`; nothing where that is a command."""
    if shutil.which("codex"):
        return ()
    try:
        program = find_binary()
    except ConfigError:
        return (f"There is no `codex` on this machine yet: {HOW_TO_GET_IT}.",)
    # The package from PyPI brings the program and no command.
    return (
        "There is no `codex` command on your PATH; `isthmus codex run` finds the program all the same. To have one:",
        f"  `alias codex={shlex.quote(str(program))}`",
    )


def version_of(program: Path) -> tuple[int, int, int] | None:
    """`None`: it does not answer like Codex."""
    try:
        told = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=_PATIENCE, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ConfigError(f"`{program}` does not run: {error}; {HOW_TO_GET_IT}") from error
    found = re.match(r"codex(?:-cli)? (\d+)\.(\d+)\.(\d+)", told.stdout)
    return (int(found[1]), int(found[2]), int(found[3])) if found else None
