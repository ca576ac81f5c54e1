"""Turns → Chat Completions messages, as the model's message rules want them.

In: a normalised `History`, the rules, the tool identities, and the words that lead (instructions, and the preamble that
other planners need said). Out: `messages`, byte for byte the same for the same input, so that a longer conversation
begins with the messages of the shorter one and prompt caches stay warm. The parts of one message are joined by a line
break where none is there already; whole messages that must become one by an empty line.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from isthmus.bridge.capabilities import MessageRules
from isthmus.bridge.diagnostics import decide_item, repair_history
from isthmus.bridge.dialects.chat.order import CONTINUE, MessageOrder, create_call_id_codec, text_part
from isthmus.bridge.history import replay
from isthmus.bridge.history.fitting import Fitted, Fitter
from isthmus.bridge.tools.catalog import name_past_call
from isthmus.bridge.types import history as past
from isthmus.bridge.types.tools import ToolIdentityMap
from isthmus.protocol.json import JsonObject


def build_messages(
    history: past.History,
    *,
    rules: MessageRules,
    identities: ToolIdentityMap,
    instructions: str | None = None,
    preamble: str = "",
    thinking: bool = False,
) -> MessageOrder:
    """`thinking`: whether the model will think in this request; some providers then insist on past reasoning."""
    builder = _Builder(rules, identities, thinking)
    leading = past.opening(history.turns)
    builder.open(instructions or "", leading, preamble)
    begin = len(builder.messages)
    for turn in history.turns[len(leading) :]:
        if isinstance(turn, past.Said):
            builder.say(turn)
        elif isinstance(turn, past.Acted):
            builder.act(turn)
    builder.ensure_user(begin)
    return builder


class _Builder(MessageOrder):
    def __init__(self, rules: MessageRules, identities: ToolIdentityMap, thinking: bool) -> None:
        super().__init__(rules)
        self._rules = rules
        self._name_of = partial(name_past_call, identities=identities)
        self._thinking = thinking
        self._id = create_call_id_codec(rules.call_ids)
        self._fitter = Fitter(rules, self._name_of, self.decisions)

    def open(self, instructions: str, leading: list[past.Said], preamble: str) -> None:
        """Instructions first. The preamble follows them, or closes the opening where there are none."""
        if self._rules.system == "leading":
            self._system(instructions, *(self._fitter.text(said.parts) for said in leading), preamble)
        else:
            self._system(instructions, preamble if instructions else "")
            for said in leading:
                self.say(said)
            self._system("" if instructions else preamble)

    def say(self, said: past.Said) -> None:
        rules = self._rules
        if said.role == "user":
            message: JsonObject = {"role": "user", "content": self._content(said.parts)}
        elif rules.system == "leading":
            message = {"role": "user", "content": f"[{said.role} instruction]\n{self._fitter.text(said.parts)}"}
            reason = "this model takes one system message, at the start; a later one became a marked user message"
            self.decisions.append(decide_item(said.path, "degraded", reason))
        else:
            role = rules.developer if said.role == "developer" else "system"
            message = {"role": role, "content": self._fitter.text(said.parts)}
        if said.name and rules.names:
            message["name"] = said.name
        elif said.name:
            reason = "this provider takes no `name` on messages"
            self.decisions.append(decide_item(f"{said.path}.name", "ignored", reason))
        self.add(message, said.path)

    def act(self, turn: past.Acted) -> None:
        """The assistant message, one tool message per call, then the media that those cannot carry."""
        rules = self._rules
        if replay.is_unfinished(turn):
            replay.leave_out_unfinished(turn, rules, self.decisions)
            return
        message: JsonObject = {"role": "assistant"}
        text = "\n\n".join(turn.texts) if turn.texts else ""
        if text or rules.empty_content != "omit":
            message["content"] = text or (None if rules.empty_content == "null" else "")
        if turn.thoughts or (self._thinking and turn.calls):
            self._replay_reasoning(turn, message)
        if not turn.calls:
            self.add(message, turn.path)
            return
        message["tool_calls"] = self._calls(turn.calls)
        self.add(message, turn.path)
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
        self.decisions.append(repair_history("input", f"this provider wants {wanted}; `{CONTINUE}` was added"))

    def _system(self, *texts: str) -> None:
        text = "\n\n".join(text for text in texts if text)
        if text:
            self.add({"role": "system", "content": text}, "instructions")

    def _replay_reasoning(self, turn: past.Acted, message: JsonObject) -> None:
        """A vendor that insists on reasoning in tool turns gets its placeholder where the reasoning is gone; one that
        wants none gets none, and that is no loss: such models expect to think afresh."""
        rules, thoughts, decisions = self._rules, turn.thoughts, self.decisions
        placeholder = rules.replay_placeholder if self._thinking and turn.calls else None
        if not thoughts and placeholder is None:
            return
        for thought in thoughts:
            if rules.replay_extras in thought.extras:
                message[rules.replay_extras] = thought.extras[rules.replay_extras]
        if not replay.wants_reasoning(turn, rules):
            replay.leave_out(thoughts, replay.UNWANTED, decisions)
            return
        if rules.replay_details and self._replay_details(thoughts, message):
            return
        replay.leave_out([thought for thought in thoughts if not thought.text], replay.EMPTY, decisions)
        replay.tell_summarised(thoughts, decisions)
        text = "\n".join(thought.text for thought in thoughts if thought.text)
        if not text:
            if placeholder is None:
                return
            text = placeholder
            gone = "the reasoning of this tool turn is gone; the provider insists on the field and gets a placeholder"
            decisions.append(repair_history(turn.path, gone))
        if rules.replay_chunks:
            chunk = {"type": "thinking", "thinking": [text_part(text)], "closed": True}
            message["content"] = [chunk, text_part(message["content"])] if message.get("content") else [chunk]
        else:
            message[rules.replay_field] = text

    def _replay_details(self, thoughts: tuple[past.Thought, ...], message: JsonObject) -> bool:
        """The vendor's own array, whole and unchanged; several thoughts of one turn follow each other."""
        given = [thought.extras.get(replay.DETAILS) for thought in thoughts]
        whole = [detail for details in given if isinstance(details, list) for detail in details]
        if not whole:
            return False
        message[replay.DETAILS] = whole
        why = f"the provider takes its own `{replay.DETAILS}` of this turn back; plain reasoning cannot stand beside it"
        for thought, details in zip(thoughts, given, strict=True):
            if not (isinstance(details, list) and details):
                lost = decide_item(thought.path, "ignored", why)
                self.decisions.append(lost if thought.text else decide_item(thought.path, "supported", replay.EMPTY))
        return True

    def _calls(self, made: tuple[past.PastCall, ...]) -> list[JsonObject]:
        calls: list[JsonObject] = []
        for call in made:
            function = {"name": self._name_of(call.name, call.namespace), "arguments": call.arguments}
            calls.append({"id": self._id(call.id), "type": "function", "function": function})
        field, fallback = self._rules.replay_extras, self._rules.replay_extras_fallback
        if not field:
            return calls
        # Vendor state goes back to the call it came with; where all of it is gone, the first call says so.
        for written, before in zip(calls, made, strict=True):
            if before.extra is not None:
                written[field] = before.extra
        if fallback is not None and not any(field in call for call in calls):
            calls[0][field] = dict(fallback)
            reason = f"the provider's `{field}` of this turn is gone; its documented fallback was sent"
            self.decisions.append(repair_history(made[0].path, reason))
        return calls

    def _results(self, turn: past.Acted) -> None:
        following: list[Fitted] = []
        for call, result in zip(turn.calls, turn.results, strict=True):
            parts, media = self._fitter.told(result) if result.failed else result.parts, None
            if len(parts) == 1 and type(parts[0]) is past.Words:
                content: str | list[JsonObject] = parts[0].text
            else:
                inside, media = self._fitter.result(parts)
                content = write_content(inside)
            self.add({"role": "tool", "tool_call_id": self._id(call.id), "content": content}, result.path)
            if media:
                name = self._name_of(call.name, call.namespace)
                following += [past.Words(f"[from the output of `{name}`]"), *media]
        if following:
            self.add({"role": "user", "content": [_write(part) for part in following]}, turn.results[-1].path)

    def _content(self, parts: tuple[past.Part, ...]) -> str | list[JsonObject]:
        """Of most messages a text, as it came."""
        only = parts[0] if len(parts) == 1 else None
        return only.text if type(only) is past.Words else write_content(self._fitter.fit(parts))


def write_content(parts: Sequence[Fitted]) -> str | list[JsonObject]:
    """A string if all of it is text, else a list of parts in their order."""
    if len(parts) == 1 and type(parts[0]) is past.Words:
        return parts[0].text
    texts = [part.text for part in parts if isinstance(part, past.Words)]
    return past.join_texts(texts) if len(texts) == len(parts) else [_write(part) for part in parts]


def _write(part: Fitted) -> JsonObject:
    match part:
        case past.Words():
            return text_part(part.text)
        case past.Image():
            detail = {"detail": part.detail} if part.detail else {}
            return {"type": "image_url", "image_url": {"url": part.url, **detail}}
        case past.File() if part.video:
            detail = {"detail": part.detail} if part.detail in ("low", "high") else {}
            return {"type": "video_url", "video_url": {"url": part.data or part.url, **detail}}
        case past.File():
            named = {"filename": part.name} if part.name else {}
            return {"type": "file", "file": {**named, "file_data": part.data}}
        case past.Audio():
            return {"type": "input_audio", "input_audio": {"data": part.data, "format": part.format}}
