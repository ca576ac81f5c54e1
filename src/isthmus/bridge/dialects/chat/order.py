"""The order of messages that a provider insists on: who may speak after whom.

In: messages one by one, and the model's rules. Out: the list that may be sent. A rule is kept with the smallest
change: a few words of the assistant between a tool's result and the user, or two messages of one speaker as one.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

from isthmus.bridge.diagnostics import CompatibilityDecision
from isthmus.bridge.dialects.chat.content import text_part
from isthmus.protocol.json import JsonObject

if TYPE_CHECKING:
    from isthmus.bridge.capabilities import MessageRules

CONTINUE: Final = "Continue."
"""The whole user message where a provider insists on one and the client sent none."""
BRIDGE: Final = "Understood."
"""What the assistant says between a tool's result and the user, where the user may not speak straight after it."""


class MessageOrder:
    """A growing list of messages that always keeps the rules."""

    __slots__ = ("_bridges", "_decisions", "_merges", "messages")

    def __init__(
        self,
        rules: MessageRules,
        messages: Iterable[JsonObject] = (),
        decisions: list[CompatibilityDecision] | None = None,
    ) -> None:
        self.messages = list(messages)
        self._bridges = rules.after_tool == "assistant" or rules.turns == "alternating"
        self._merges = rules.turns != "free"
        self._decisions = [] if decisions is None else decisions

    def add(self, message: JsonObject, path: str = "") -> None:
        """`path`: where the message comes from, for what has to be said about it."""
        if not self.messages or not (self._bridges or self._merges):
            self.messages.append(message)
            return
        last = self.messages[-1]
        if self._bridges and message["role"] == "user" and last["role"] == "tool":
            self.messages += [{"role": "assistant", "content": BRIDGE}, message]
            reason = f"the provider takes no user message straight after a tool's result; `{BRIDGE}` was put between"
            self._decisions.append(
                CompatibilityDecision(path or "input", "degraded", reason, code="bridge.history.repaired")
            )
        elif self._merges and _can_join(last, message):
            self.messages[-1] = {**last, **message, "content": _join(last["content"], message["content"])}
            reason = "the provider takes no two messages of one speaker in a row; they were joined"
            self._decisions.append(CompatibilityDecision(path or "input", "supported", reason))
        else:
            self.messages.append(message)


def _can_join(last: JsonObject, message: JsonObject) -> bool:
    """One speaker, nothing but content: calls, results and names keep messages apart."""
    return (
        last["role"] == message["role"] != "tool"
        and set(last) == {"role", "content"}
        and bool(last["content"])
        and bool(message.get("content"))
        and "name" not in message
    )


def _join(first: Any, second: Any) -> str | list[JsonObject]:
    if isinstance(first, str) and isinstance(second, str):
        return f"{first}\n\n{second}"
    return [*_parts(first), *_parts(second)]


def _parts(content: Any) -> list[JsonObject]:
    return [text_part(content)] if isinstance(content, str) else list(content)
