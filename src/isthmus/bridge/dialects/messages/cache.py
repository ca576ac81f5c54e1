"""Where the prompt cache is told to begin anew: at most four marks, in the order tools, system, messages.

The client's own marks count, the last of them if there are too many. Without any, the ends of what hardly changes are
marked: the last tool, the system prompt, and the last two turns of the user, so that the next request of an agent finds
what this one wrote. All marks live equally long: one that lives longer may not stand behind one that does not
(claude-code#37842), and a fifth is refused (litellm#16062).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from isthmus.protocol.json import JsonObject

MAX_MARKS: Final = 4
_TURNS: Final = 2


def place_marks(
    tools: list[JsonObject],
    system: list[JsonObject],
    messages: Sequence[JsonObject],
    chosen: Sequence[JsonObject],
    ttl: str,
) -> int:
    """Mark the blocks, and say how many of the client's own marks found no place."""
    ends = [*tools[-1:], *system[-1:]]
    said = [message["content"][-1] for message in messages if message["role"] == "user"]
    marked = list(chosen[-MAX_MARKS:]) if chosen else [*ends, *said[-_TURNS:]]
    mark: JsonObject = {"type": "ephemeral", "ttl": "1h"} if ttl == "1h" else {"type": "ephemeral"}
    for block in marked:
        block["cache_control"] = mark
    return max(len(chosen) - MAX_MARKS, 0)
