"""Compaction: what was said becomes a summary that the model itself writes, and that later turns go on from.

In: a request whose last item is a `compaction_trigger`, or whose conversation has passed the client's own threshold.
Out: the request that asks for the summary, and the items that stand for the conversation once it is there: every
message of the user, the system and the developer, which no summary replaces, and the sealed summary behind them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import Any, Final

import msgspec

from isthmus.bridge.parse import Request
from isthmus.errors import RequestRefused
from isthmus.protocol.json import JsonObject
from isthmus.protocol.responses import CreateResponse

_type_of: Final = itemgetter("type")
TRIGGER: Final = "compaction_trigger"
LEAST_THRESHOLD: Final = 1_000
DEFAULT_THRESHOLD: Final = 200_000
"""Tokens, where the client names none and the model's window is not known."""
_SHARE: Final = 0.8
"""Of the window, where the client names no threshold: the answer and the summary need room as well."""

INSTRUCTIONS: Final = (
    "You write hand-over notes. You are given a conversation between a user and an assistant that may use tools. "
    "Whoever reads your notes goes on with the work and has nothing else of the conversation but the user's own "
    "messages. Do not answer the user, do not call tools, do not address anybody: write the notes and nothing else."
)
ASK: Final = (
    "Write the hand-over notes for everything above. State, as far as they exist: what the user wants, with every "
    "constraint and preference; what was decided and why; what was done, with exact names of files, functions, "
    "commands, identifiers and values; what was found out, results of tools included; what failed and how; the "
    "present state; and what comes next. Quote exactly what must not change. Leave out greetings and repetition."
)
_FOR_THE_ANSWER: Final = (
    *("tools", "tool_choice", "parallel_tool_calls", "max_tool_calls", "text", "include", "max_output_tokens"),
    *("top_logprobs", "stop", "context_management", "truncation", "prompt"),
)
"""What a client asks of its answer says nothing about a summary."""


def asks_compaction(items: Sequence[JsonObject]) -> bool:
    """Whether a request ends with the trigger. Anywhere else it has no meaning that could be guessed."""
    kinds = [*map(_type_of, items)]
    if TRIGGER not in kinds:
        return False
    index = kinds.index(TRIGGER)
    if index + 1 < len(items):
        wanted = f"`input[{index}]`: a `{TRIGGER}` must be the last item of `input`; move it to the end"
        raise RequestRefused(wanted, code="invalid_value", param=f"input[{index}]")
    return True


def read_threshold(body: CreateResponse, window: int | None) -> int | None:
    """How many tokens the conversation may take before it is compacted; `None`: it is left alone."""
    asked: Any = body.get("context_management")
    if not asked:
        return None
    rule = next((one for one in asked if isinstance(one, Mapping) and one.get("type") == "compaction"), None)
    if rule is None:
        return None
    given, where = rule.get("compact_threshold"), "context_management"
    if given is None:
        return int(window * _SHARE) if window else DEFAULT_THRESHOLD
    if not isinstance(given, int) or isinstance(given, bool) or given < LEAST_THRESHOLD:
        wanted = f"`compact_threshold` of `{where}` must be a whole number of tokens, at least {LEAST_THRESHOLD}"
        raise RequestRefused(f"{wanted}; got {given!r}", code="invalid_value", param=where)
    return given


def summary_request(request: Request) -> Request:
    """The same conversation, asked for its summary."""
    body: Any = {name: value for name, value in request.body.items() if name not in _FOR_THE_ANSWER}
    items = tuple([item for item in request.items if item["type"] != TRIGGER])
    asked = {"type": "message", "role": "user", "content": ASK}
    return msgspec.structs.replace(request, body={**body, "instructions": INSTRUCTIONS}, items=(*items, asked))


def compacted(items: Sequence[JsonObject], summary: JsonObject) -> list[JsonObject]:
    """What stands for these items from now on."""
    return [*kept_messages(items), summary]


def kept_messages(items: Sequence[JsonObject]) -> list[JsonObject]:
    """What was asked, and by whose rules: no summary replaces it."""
    return [item for item in items if says(item, "user", "system", "developer")]


def user_messages(items: Sequence[JsonObject]) -> list[JsonObject]:
    """Those that a window shows its client, which keeps its own rules."""
    return [item for item in items if says(item, "user")]


def says(item: JsonObject, *roles: str) -> bool:
    return item["type"] == "message" and item.get("role") in roles


def cut_history(items: Sequence[JsonObject], answered: Sequence[bool]) -> list[JsonObject]:
    """Stored turns from their newest compaction on. `answered` says which items were ours to say: what a client itself
    sends in front of a compaction item was chosen by it, and stays."""
    if "compaction" not in map(_type_of, items):
        return list(items)
    newest = max((at for at, item in enumerate(items) if answered[at] and item["type"] == "compaction"), default=None)
    return list(items) if newest is None else [*compacted(items[:newest], items[newest]), *items[newest + 1 :]]
