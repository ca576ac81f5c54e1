"""How a client of Anthropic's API is known, and which names of models it shows."""

from __future__ import annotations

import re
from typing import Final

from starlette.types import Scope

from isthmus.bridge.doors.messages import VERSION
from isthmus.server.http import header

PREFIX: Final = "claude-"
"""Claude Code offers only models whose names begin so: each of ours has such a name beside its own."""
_PATH: Final = re.compile(r"(?:.*/v1)?/messages(?:/count_tokens)?|/api/hello", re.DOTALL)


def speaks_messages(scope: Scope) -> bool:
    """Whether the client is one of Anthropic's API, wherever it asks."""
    return _PATH.fullmatch(scope["path"]) is not None or bool(header(scope, VERSION.encode()))
