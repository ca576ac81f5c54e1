"""How a client of Anthropic's API is known, and which names of models it shows."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from starlette.types import Scope

from isthmus.bridge.doors.messages import VERSION
from isthmus.server.http import header

PREFIX: Final = "claude-"
"""Claude Code offers only models whose names begin so: each of ours has such a name beside its own."""
_VERSION: Final = VERSION.encode()
_PATH: Final = re.compile(r"(?:.*/v1)?/messages(?:/count_tokens)?|/api/hello", re.DOTALL)


def speaks_messages(scope: Scope) -> bool:
    """Whether the client is one of Anthropic's API, wherever it asks."""
    return _is_theirs(scope["path"]) or bool(header(scope, _VERSION))


@lru_cache(256)
def _is_theirs(path: str) -> bool:
    return _PATH.fullmatch(path) is not None
