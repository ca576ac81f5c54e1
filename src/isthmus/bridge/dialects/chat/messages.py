"""Turns → Chat Completions messages, as the model's message rules want them.

In: a normalised `History`, the rules, the tool identities, and the words that lead (instructions, and the
preamble that other planners need said). Out: `messages`, byte for byte the same for the same input, so
that a longer conversation begins with the messages of the shorter one and prompt caches stay warm.

Text: the parts of one message are joined by a line break where none is there already; whole messages that
must become one (leading system messages, adjacent assistant texts) are joined by an empty line.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from isthmus.bridge.diagnostics import CompatibilityDecision
from isthmus.bridge.dialects.chat.call_ids import create_call_id_codec
from isthmus.bridge.dialects.chat.content import ContentWriter, text_part
from isthmus.bridge.dialects.chat.past_reasoning import leave_out_unfinished, replay_reasoning
from isthmus.bridge.tools.names import name_past_call
from isthmus.bridge.types.history import Acted, History, PastCall, Said, Turn
from isthmus.bridge.types.tools import ToolIdentityMap
from isthmus.protocol.json import JsonObject

if TYPE_CHECKING:
    from isthmus.bridge.capabilities import MessageRules

CONTINUE: Final = "Continue."
"""The whole user message where a provider insists on one and the client sent none."""


@dataclass(frozen=True, slots=True)
class MessagesPlan:
    messages: list[JsonObject]
    decisions: tuple[CompatibilityDecision, ...] = ()
    replayed_reasoning: bool = False


def build_messages(
    history: History,
    *,
    rules: MessageRules,
    identities: ToolIdentityMap,
    instructions: str | None = None,
    preamble: str = "",
    thinking: bool = False,
) -> MessagesPlan:
    """`thinking`: whether the model will think in this request; some providers then insist on past reasoning."""
    builder = _Builder(rules, identities, thinking)
    leading = _leading(history.turns)
    builder.open(instructions or "", leading, preamble)
    for turn in history.turns[len(leading) :]:
        if isinstance(turn, Said):
            builder.say(turn)
        else:
            builder.act(turn)
    builder.ensure_user()
    return MessagesPlan(builder.messages, tuple(builder.decisions), builder.replayed)


def _leading(turns: tuple[Turn, ...]) -> list[Said]:
    """The system and developer messages before anything else: they never move while a conversation grows."""
    leading: list[Said] = []
    for turn in turns:
        if not isinstance(turn, Said) or turn.role == "user":
            break
        leading.append(turn)
    return leading


class _Builder:
    """One pass over the turns."""

    def __init__(self, rules: MessageRules, identities: ToolIdentityMap, thinking: bool) -> None:
        self.messages: list[JsonObject] = []
        self.decisions: list[CompatibilityDecision] = []
        self.replayed = False
        self._rules = rules
        self._identities = identities
        self._thinking = thinking
        self._id = create_call_id_codec(rules.call_ids)
        self._content = ContentWriter(rules, self._name_of, self.decisions)
        self._opening = 0
        self._heard_user = False

    def open(self, instructions: str, leading: list[Said], preamble: str) -> None:
        """Instructions first. The preamble follows them, or closes the opening where there are none."""
        if self._rules.system == "leading":
            texts = [instructions, *(self._content.text(said.parts) for said in leading), preamble]
            self._system(_paragraphs(texts))
        else:
            self._system(_paragraphs([instructions, preamble if instructions else ""]))
            for said in leading:
                self.say(said)
            self._system("" if instructions else preamble)
        self._opening = len(self.messages)

    def say(self, said: Said) -> None:
        rules = self._rules
        if said.role == "user":
            self._heard_user = True
            message: JsonObject = {"role": "user", "content": self._content.content(said.parts)}
        elif rules.system == "leading":
            self._heard_user = True
            message = {"role": "user", "content": f"[{said.role} instruction]\n{self._content.text(said.parts)}"}
            reason = "this model takes one system message, at the start; a later one became a marked user message"
            self._degraded(said.path, reason)
        else:
            role = rules.developer if said.role == "developer" else "system"
            message = {"role": role, "content": self._content.text(said.parts)}
        if said.name and rules.names:
            message["name"] = said.name
        elif said.name:
            reason = "this provider takes no `name` on messages"
            self.decisions.append(
                CompatibilityDecision(f"{said.path}.name", "ignored", reason, code="bridge.item.ignored")
            )
        self.messages.append(message)

    def act(self, turn: Acted) -> None:
        """The assistant message, one tool message per call, then the media that those cannot carry."""
        rules = self._rules
        if not turn.texts and not turn.calls:
            leave_out_unfinished(turn, rules, self.decisions)
            return
        replay = replay_reasoning(turn, rules, thinking=self._thinking, decisions=self.decisions)
        self.replayed = self.replayed or replay.done
        message: JsonObject = {"role": "assistant"}
        text = "\n\n".join(turn.texts)
        if replay.chunk is not None:
            message["content"] = [replay.chunk, text_part(text)] if text else [replay.chunk]
        elif text:
            message["content"] = text
        elif rules.empty_content != "omit":
            message["content"] = None if rules.empty_content == "null" else ""
        message.update(replay.fields)
        if turn.calls:
            message["tool_calls"] = self._calls(turn)
        self.messages.append(message)
        if turn.calls:
            self._results(turn)

    def ensure_user(self) -> None:
        if self._heard_user or not self._rules.needs_user:
            return
        self.messages.insert(self._opening, {"role": "user", "content": CONTINUE})
        reason = f"this provider wants at least one user message; `{CONTINUE}` was added"
        self.decisions.append(CompatibilityDecision("input", "degraded", reason, code="bridge.history.repaired"))

    def _system(self, text: str) -> None:
        if text:
            self.messages.append({"role": "system", "content": text})

    def _calls(self, turn: Acted) -> list[JsonObject]:
        calls: list[JsonObject] = [
            {
                "id": self._id(call.id),
                "type": "function",
                "function": {"name": self._name_of(call.name, call.namespace), "arguments": call.arguments},
            }
            for call in turn.calls
        ]
        if self._rules.replay_extras:
            self._add_extras(calls, turn.calls)
        return calls

    def _add_extras(self, calls: list[JsonObject], past: tuple[PastCall, ...]) -> None:
        """Vendor state goes back to the call it came with; where all of it is gone, the first call says so."""
        field, fallback, found = self._rules.replay_extras, self._rules.replay_extras_fallback, False
        for call, before in zip(calls, past, strict=True):
            if before.extra is not None:
                call[field] = before.extra
                found = True
        if not found and fallback is not None:
            calls[0][field] = dict(fallback)
            reason = f"the provider's `{field}` of this turn is gone; its documented fallback was sent"
            self.decisions.append(
                CompatibilityDecision(past[0].path, "degraded", reason, code="bridge.history.repaired")
            )

    def _results(self, turn: Acted) -> None:
        following: list[JsonObject] = []
        for call, result in zip(turn.calls, turn.results, strict=True):
            text, media = self._content.output(result.parts)
            self.messages.append({"role": "tool", "tool_call_id": self._id(call.id), "content": text})
            if media:
                name = self._name_of(call.name, call.namespace)
                following += [text_part(f"[from the output of `{name}`]"), *media]
        if following:
            self._heard_user = True
            self.messages.append({"role": "user", "content": following})

    def _name_of(self, name: str, namespace: str | None) -> str:
        return name_past_call(name, namespace, self._identities)

    def _degraded(self, path: str, reason: str) -> None:
        self.decisions.append(CompatibilityDecision(path, "degraded", reason, code="bridge.item.degraded"))


def _paragraphs(texts: Iterable[str]) -> str:
    return "\n\n".join(text for text in texts if text)
