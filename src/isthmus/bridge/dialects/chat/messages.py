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
from typing import TYPE_CHECKING

from isthmus.bridge.diagnostics import CompatibilityDecision
from isthmus.bridge.dialects.chat.call_ids import create_call_id_codec
from isthmus.bridge.dialects.chat.content import text_part, write_content, write_parts
from isthmus.bridge.dialects.chat.order import CONTINUE, MessageOrder
from isthmus.bridge.dialects.chat.past_reasoning import replay_reasoning
from isthmus.bridge.history.fitting import Fitted, Fitter
from isthmus.bridge.history.replay import is_unfinished, leave_out_unfinished
from isthmus.bridge.tools.names import name_past_call
from isthmus.bridge.types.history import Acted, History, PastCall, Said, Words, opening
from isthmus.bridge.types.tools import ToolIdentityMap
from isthmus.protocol.json import JsonObject

if TYPE_CHECKING:
    from isthmus.bridge.capabilities import MessageRules


@dataclass(frozen=True, slots=True)
class MessagesPlan:
    messages: list[JsonObject]
    decisions: tuple[CompatibilityDecision, ...] = ()


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
    leading = opening(history.turns)
    builder.open(instructions or "", leading, preamble)
    for turn in history.turns[len(leading) :]:
        if isinstance(turn, Said):
            builder.say(turn)
        elif isinstance(turn, Acted):
            builder.act(turn)
    builder.ensure_user()
    return MessagesPlan(builder.order.messages, tuple(builder.decisions))


class _Builder:
    """One pass over the turns."""

    def __init__(self, rules: MessageRules, identities: ToolIdentityMap, thinking: bool) -> None:
        self.decisions: list[CompatibilityDecision] = []
        self.order = MessageOrder(rules, decisions=self.decisions)
        self._rules = rules
        self._identities = identities
        self._thinking = thinking
        self._id = create_call_id_codec(rules.call_ids)
        self._fitter = Fitter(rules, self._name_of, self.decisions)
        self._opening = 0
        self._heard_user = False

    def open(self, instructions: str, leading: list[Said], preamble: str) -> None:
        """Instructions first. The preamble follows them, or closes the opening where there are none."""
        if self._rules.system == "leading":
            texts = [instructions, *(self._fitter.text(said.parts) for said in leading), preamble]
            self._system(_paragraphs(texts))
        else:
            self._system(_paragraphs([instructions, preamble if instructions else ""]))
            for said in leading:
                self.say(said)
            self._system("" if instructions else preamble)
        self._opening = len(self.order.messages)

    def say(self, said: Said) -> None:
        rules = self._rules
        if said.role == "user":
            self._heard_user = True
            message: JsonObject = {"role": "user", "content": write_content(self._fitter.fit(said.parts))}
        elif rules.system == "leading":
            self._heard_user = True
            message = {"role": "user", "content": f"[{said.role} instruction]\n{self._fitter.text(said.parts)}"}
            reason = "this model takes one system message, at the start; a later one became a marked user message"
            self._degraded(said.path, reason)
        else:
            role = rules.developer if said.role == "developer" else "system"
            message = {"role": role, "content": self._fitter.text(said.parts)}
        if said.name and rules.names:
            message["name"] = said.name
        elif said.name:
            reason = "this provider takes no `name` on messages"
            self.decisions.append(
                CompatibilityDecision(f"{said.path}.name", "ignored", reason, code="bridge.item.ignored")
            )
        self.order.add(message, said.path)

    def act(self, turn: Acted) -> None:
        """The assistant message, one tool message per call, then the media that those cannot carry."""
        rules = self._rules
        if is_unfinished(turn):
            leave_out_unfinished(turn, rules, self.decisions)
            return
        replay = replay_reasoning(turn, rules, thinking=self._thinking, decisions=self.decisions)
        message: JsonObject = {"role": "assistant"}
        text = "\n\n".join(turn.texts)
        if replay.chunk is not None:
            message["content"] = [replay.chunk, text_part(text)] if text else [replay.chunk]
        elif text:
            message["content"] = text
        elif rules.empty_content != "omit":
            message["content"] = None if rules.empty_content == "null" else ""
        message.update(replay.fields)
        calls = turn.calls
        if calls:
            message["tool_calls"] = self._calls(calls)
        self.order.add(message, turn.path)
        if calls:
            self._results(turn, calls)

    def ensure_user(self) -> None:
        """A user message where the provider wants one: at all, or (where roles alternate) first."""
        messages, rules = self.order.messages, self._rules
        first = messages[self._opening]["role"] if len(messages) > self._opening else "user"
        if rules.turns == "alternating" and first != "user":
            reason = f"this provider wants a user message first; `{CONTINUE}` was added"
        elif rules.needs_user and not self._heard_user:
            reason = f"this provider wants at least one user message; `{CONTINUE}` was added"
        else:
            return
        messages.insert(self._opening, {"role": "user", "content": CONTINUE})
        self.decisions.append(CompatibilityDecision("input", "degraded", reason, code="bridge.history.repaired"))

    def _system(self, text: str) -> None:
        if text:
            self.order.add({"role": "system", "content": text}, "instructions")

    def _calls(self, past: tuple[PastCall, ...]) -> list[JsonObject]:
        calls: list[JsonObject] = [
            {
                "id": self._id(call.id),
                "type": "function",
                "function": {"name": self._name_of(call.name, call.namespace), "arguments": call.arguments},
            }
            for call in past
        ]
        if self._rules.replay_extras:
            self._add_extras(calls, past)
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

    def _results(self, turn: Acted, calls: tuple[PastCall, ...]) -> None:
        following: list[Fitted] = []
        for call, result in zip(calls, turn.results, strict=True):
            inside, media = self._fitter.result(result.parts)
            content = write_content(inside)
            self.order.add({"role": "tool", "tool_call_id": self._id(call.id), "content": content}, result.path)
            if media:
                name = self._name_of(call.name, call.namespace)
                following += [Words(f"[from the output of `{name}`]"), *media]
        if following:
            self._heard_user = True
            self.order.add({"role": "user", "content": write_parts(following)}, turn.results[-1].path)

    def _name_of(self, name: str, namespace: str | None) -> str:
        return name_past_call(name, namespace, self._identities)

    def _degraded(self, path: str, reason: str) -> None:
        self.decisions.append(CompatibilityDecision(path, "degraded", reason, code="bridge.item.degraded"))


def _paragraphs(texts: Iterable[str]) -> str:
    return "\n\n".join(text for text in texts if text)
