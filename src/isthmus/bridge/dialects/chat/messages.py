"""Turns → Chat Completions messages, as the model's message rules want them.

In: a normalised `History`, the rules, the tool identities, and the words that lead (instructions, and the
preamble that other planners need said). Out: `messages`, byte for byte the same for the same input, so
that a longer conversation begins with the messages of the shorter one and prompt caches stay warm.

Text: the parts of one message are joined by a line break where none is there already; whole messages that
must become one (leading system messages, adjacent assistant texts) are joined by an empty line.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from isthmus.bridge.diagnostics import CompatibilityDecision
from isthmus.bridge.dialects.chat.order import CONTINUE, MessageOrder, create_call_id_codec, repaired, text_part
from isthmus.bridge.dialects.chat.past_reasoning import replay_reasoning
from isthmus.bridge.history.fitting import Fitted, Fitter
from isthmus.bridge.history.replay import is_unfinished, leave_out_unfinished
from isthmus.bridge.tools.catalog import name_past_call
from isthmus.bridge.types.history import Acted, Audio, File, History, Image, PastCall, Said, Words, join_texts, opening
from isthmus.bridge.types.tools import ToolIdentityMap
from isthmus.protocol.json import JsonObject

if TYPE_CHECKING:
    from isthmus.bridge.capabilities import MessageRules


class MessagesPlan(NamedTuple):
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
    begin = len(builder.messages)
    for turn in history.turns[len(leading) :]:
        if isinstance(turn, Said):
            builder.say(turn)
        elif isinstance(turn, Acted):
            builder.act(turn)
    builder.ensure_user(begin)
    return MessagesPlan(builder.messages, tuple(builder.decisions))


class _Builder(MessageOrder):
    """One pass over the turns."""

    def __init__(self, rules: MessageRules, identities: ToolIdentityMap, thinking: bool) -> None:
        super().__init__(rules)
        self._rules = rules
        self._identities = identities
        self._thinking = thinking
        self._id = create_call_id_codec(rules.call_ids)
        self._fitter = Fitter(rules, self._name_of, self.decisions)

    def open(self, instructions: str, leading: list[Said], preamble: str) -> None:
        """Instructions first. The preamble follows them, or closes the opening where there are none."""
        if self._rules.system == "leading":
            self._system(instructions, *(self._fitter.text(said.parts) for said in leading), preamble)
        else:
            self._system(instructions, preamble if instructions else "")
            for said in leading:
                self.say(said)
            self._system("" if instructions else preamble)

    def say(self, said: Said) -> None:
        rules = self._rules
        if said.role == "user":
            message: JsonObject = {"role": "user", "content": write_content(self._fitter.fit(said.parts))}
        elif rules.system == "leading":
            message = {"role": "user", "content": f"[{said.role} instruction]\n{self._fitter.text(said.parts)}"}
            reason = "this model takes one system message, at the start; a later one became a marked user message"
            self.decisions.append(CompatibilityDecision(said.path, "degraded", reason, code="bridge.item.degraded"))
        else:
            role = rules.developer if said.role == "developer" else "system"
            message = {"role": role, "content": self._fitter.text(said.parts)}
        if said.name and rules.names:
            message["name"] = said.name
        elif said.name:
            path, reason = f"{said.path}.name", "this provider takes no `name` on messages"
            self.decisions.append(CompatibilityDecision(path, "ignored", reason, code="bridge.item.ignored"))
        self.add(message, said.path)

    def act(self, turn: Acted) -> None:
        """The assistant message, one tool message per call, then the media that those cannot carry."""
        rules = self._rules
        if is_unfinished(turn):
            leave_out_unfinished(turn, rules, self.decisions)
            return
        message: JsonObject = {"role": "assistant"}
        text = "\n\n".join(turn.texts)
        if text or rules.empty_content != "omit":
            message["content"] = text or (None if rules.empty_content == "null" else "")
        replay_reasoning(turn, message, rules, thinking=self._thinking, decisions=self.decisions)
        if turn.calls:
            message["tool_calls"] = self._calls(turn.calls)
        self.add(message, turn.path)
        if turn.calls:
            self._results(turn)

    def ensure_user(self, begin: int) -> None:
        """A user message where the provider wants one: at all, or (where roles alternate) first."""
        messages, rules = self.messages, self._rules
        if rules.turns == "alternating" and len(messages) > begin and messages[begin]["role"] != "user":
            wanted = "a user message first"
        elif rules.needs_user and not any(message["role"] == "user" for message in messages):
            wanted = "at least one user message"
        else:
            return
        messages.insert(begin, {"role": "user", "content": CONTINUE})
        self.decisions.append(repaired("input", f"this provider wants {wanted}; `{CONTINUE}` was added"))

    def _system(self, *texts: str) -> None:
        text = "\n\n".join(text for text in texts if text)
        if text:
            self.add({"role": "system", "content": text}, "instructions")

    def _calls(self, past: tuple[PastCall, ...]) -> list[JsonObject]:
        calls: list[JsonObject] = [
            {
                "id": self._id(call.id),
                "type": "function",
                "function": {"name": self._name_of(call.name, call.namespace), "arguments": call.arguments},
            }
            for call in past
        ]
        field, fallback = self._rules.replay_extras, self._rules.replay_extras_fallback
        if not field:
            return calls
        # Vendor state goes back to the call it came with; where all of it is gone, the first call says so.
        for call, before in zip(calls, past, strict=True):
            if before.extra is not None:
                call[field] = before.extra
        if fallback is not None and not any(field in call for call in calls):
            calls[0][field] = dict(fallback)
            reason = f"the provider's `{field}` of this turn is gone; its documented fallback was sent"
            self.decisions.append(repaired(past[0].path, reason))
        return calls

    def _results(self, turn: Acted) -> None:
        following: list[Fitted] = []
        for call, result in zip(turn.calls, turn.results, strict=True):
            inside, media = self._fitter.result(result.parts)
            content = write_content(inside)
            self.add({"role": "tool", "tool_call_id": self._id(call.id), "content": content}, result.path)
            if media:
                name = self._name_of(call.name, call.namespace)
                following += [Words(f"[from the output of `{name}`]"), *media]
        if following:
            self.add({"role": "user", "content": [_write(part) for part in following]}, turn.results[-1].path)

    def _name_of(self, name: str, namespace: str | None) -> str:
        return name_past_call(name, namespace, self._identities)


def write_content(parts: Sequence[Fitted]) -> str | list[JsonObject]:
    """A string if all of it is text, else a list of parts in their order."""
    if len(parts) == 1 and type(parts[0]) is Words:
        return parts[0].text
    texts = [part.text for part in parts if isinstance(part, Words)]
    return join_texts(texts) if len(texts) == len(parts) else [_write(part) for part in parts]


def _write(part: Fitted) -> JsonObject:
    match part:
        case Words():
            return text_part(part.text)
        case Image():
            detail = {"detail": part.detail} if part.detail else {}
            return {"type": "image_url", "image_url": {"url": part.url, **detail}}
        case File() if part.video:
            detail = {"detail": part.detail} if part.detail in ("low", "high") else {}
            return {"type": "video_url", "video_url": {"url": part.data or part.url, **detail}}
        case File():
            named = {"filename": part.name} if part.name else {}
            return {"type": "file", "file": {**named, "file_data": part.data}}
        case Audio():
            return {"type": "input_audio", "input_audio": {"data": part.data, "format": part.format}}
