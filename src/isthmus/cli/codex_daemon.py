"""Is a Codex daemon running? It reads its configuration once, when it starts, and serves every full-screen Codex.

In: Codex's home. Out: whether somebody listens. Worth knowing: a full-screen `codex` starts a daemon that outlives it.
It listens on a socket under `app-server-control/`; where that path would be too long for a socket, a link stands there
(seen with 0.163 and 0.166, 2026-11-16). A socket that nobody answers on was left behind by a daemon that is gone.
"""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Final

STOP: Final = "codex app-server daemon stop"

_SOCKETS: Final = "app-server-control/*.sock"
_SECONDS: Final = 1.0


def daemon_runs(home: Path) -> bool:
    return any(_answers(path) for path in home.glob(_SOCKETS))


def _answers(path: Path) -> bool:
    if not hasattr(socket, "AF_UNIX"):
        return False
    try:
        with socket.socket(socket.AF_UNIX) as probe:
            probe.settimeout(_SECONDS)
            probe.connect(str(path.resolve()))
    except TimeoutError:
        return True  # it is there, and busy
    except (OSError, ValueError):
        return False
    return True
