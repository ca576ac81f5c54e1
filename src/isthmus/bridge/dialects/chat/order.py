"""What a provider insists on: who may speak after whom, and what the id of a call looks like.

A rule is kept with the smallest change: a few words of the assistant between a tool's result and the user, or two
messages of one speaker as one.
"""

from __future__ import annotations

import hashlib
import re
import string
from collections.abc import Callable, Iterable
from typing import Any, Final, Literal

from isthmus.bridge.capabilities import MessageRules
from isthmus.bridge.diagnostics import CompatibilityDecision, repair_history
from isthmus.protocol.json import JsonObject

CONTINUE: Final = "Continue."  # the whole user message where a provider insists on one and the client sent none
BRIDGE: Final = "Understood."  # said between a tool's result and a user who may not speak straight after it
_ALPHABET: Final = string.ascii_letters + string.digits
_ID_SHAPES: Final = {
    "alphanumeric9": (re.compile("[A-Za-z0-9]{9}"), "", 9),
    "plain64": (re.compile("[A-Za-z0-9_-]{1,64}"), "toolu_", 24),
}
"""Which ids are kept, and the prefix and length of those that are made."""


class MessageOrder:
    def __init__(self, rules: MessageRules, messages: Iterable[JsonObject] = ()) -> None:
        self.messages = list(messages)
        self.decisions: list[CompatibilityDecision] = []
        self._bridges = rules.after_tool == "assistant" or rules.turns == "alternating"
        self._merges = rules.turns != "free"
        self._insists = self._bridges or self._merges

    def add(self, message: JsonObject, path: str = "input") -> None:
        """`path`: where the message comes from, for what has to be said about it."""
        if not self._insists or not self.messages:
            self.messages.append(message)
            return
        last = self.messages[-1]
        if self._bridges and message["role"] == "user" and last["role"] == "tool":
            self.messages += [{"role": "assistant", "content": BRIDGE}, message]
            reason = f"the provider takes no user message straight after a tool's result; `{BRIDGE}` was put between"
            self.decisions.append(repair_history(path, reason))
        elif self._merges and _can_join(last, message):
            self.messages[-1] = {**last, **message, "content": _join(last["content"], message["content"])}
            reason = "the provider takes no two messages of one speaker in a row; they were joined"
            self.decisions.append(CompatibilityDecision(path, "supported", reason))
        else:
            self.messages.append(message)


def text_part(text: str) -> JsonObject:
    return {"type": "text", "text": text}


def _can_join(last: JsonObject, message: JsonObject) -> bool:
    """One speaker, nothing but content: calls, results and names keep messages apart."""
    one_speaker = last["role"] == message["role"] != "tool"
    bare = last.keys() == {"role", "content"} and "name" not in message
    return one_speaker and bare and bool(last["content"] and message.get("content"))


def _join(first: Any, second: Any) -> str | list[JsonObject]:
    if isinstance(first, str) and isinstance(second, str):
        return f"{first}\n\n{second}"
    parts = ([text_part(content)] if isinstance(content, str) else content for content in (first, second))
    return [part for content in parts for part in content]


def create_call_id_codec(rule: Literal["keep", "alphanumeric9", "plain64"]) -> Callable[[str], str]:
    """Call ids in the shape of the rule, one codec per request: the same id gives the same shape in every request, and
    ids that are unique in the history stay so."""
    if rule == "keep":
        return str
    given: dict[str, str] = {}
    taken: set[str] = set()
    shape, prefix, length = _ID_SHAPES[rule]

    def encode(call_id: str) -> str:
        if call_id not in given:
            short, attempt = call_id if shape.fullmatch(call_id) else prefix + _shorten(call_id, 0, length), 0
            while short in taken:
                attempt += 1
                short = prefix + _shorten(call_id, attempt, length)
            taken.add(short)
            given[call_id] = short
        return given[call_id]

    return encode


def _shorten(call_id: str, attempt: int, length: int) -> str:
    digest = hashlib.sha256(f"{attempt}:{call_id}".encode("utf-8", "surrogatepass")).digest()
    number, base = int.from_bytes(digest[: 12 if length < 12 else 24], "big"), len(_ALPHABET)
    return "".join(_ALPHABET[number // base**place % base] for place in range(length))
