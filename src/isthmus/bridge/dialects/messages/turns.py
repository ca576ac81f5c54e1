"""Turns → the messages of a Messages request, as the protocol wants them.

Two roles take turns; neighbours of one role are one message; the user begins and, as an assistant's last word would
have to be gone on with, ends. All results of a turn's calls stand first in the very next message, in the order of the
calls (claude-code#6836). Thinking goes back block by block, where it stood and as it came, or not at all: a block is
never made up (krouter#11). Instructions that come later stay where they are: moved to the front they would cost the
cached prefix each time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from isthmus.bridge.diagnostics import CompatibilityDecision, decide_item, repair_history
from isthmus.bridge.dialects.chat.order import CONTINUE, create_call_id_codec
from isthmus.bridge.dialects.messages.blocks import text_block, write_blocks
from isthmus.bridge.history import replay
from isthmus.bridge.history.fitting import Fitted, Fitter
from isthmus.bridge.history.normalise import NO_OUTPUT
from isthmus.bridge.tools.catalog import name_past_call
from isthmus.bridge.types import history as past
from isthmus.bridge.types.plan import Plan
from isthmus.protocol.json import JsonObject

_THOUGHTS: Final = frozenset({"thinking", "redacted_thinking"})
_NO_OUTPUT: Final = (past.Words(NO_OUTPUT),)


class TurnWriter:
    def __init__(self, plan: Plan) -> None:
        self.system: list[JsonObject] = []
        self.messages: list[JsonObject] = []
        self.marked: list[JsonObject] = []
        """Blocks that the client marked for the prompt cache, in order."""
        self.called: dict[str, None] = {}
        """Names of the tools that were called."""
        self.decisions: list[CompatibilityDecision] = []
        self._rules, self._model = plan.rules, plan.target.model
        self._identities = plan.tools.identities
        self._fitter = Fitter(plan.rules, self._name_of, self.decisions)
        self._id = create_call_id_codec(plan.rules.call_ids)

    def lead(self, text: str) -> None:
        if text.strip():
            self.system.append(text_block(text))

    def open(self, said: past.Said) -> None:
        """An instruction before anything else is part of the system prompt."""
        self._check_name(said)
        self.lead(self._fitter.text(said.parts))
        if self.system and any(getattr(part, "breakpoint", None) for part in said.parts):
            self.marked.append(self.system[-1])

    def write(self, turns: Sequence[past.PastTurn]) -> None:
        for turn in turns:
            if isinstance(turn, past.Said):
                self._say(turn)
            elif isinstance(turn, past.Acted):
                self._act(turn)
        self._ensure_user()

    def add(self, role: str, blocks: list[JsonObject]) -> None:
        if blocks and self.messages and self.messages[-1]["role"] == role:
            self.messages[-1] = {"role": role, "content": [*self.messages[-1]["content"], *blocks]}
        elif blocks:
            self.messages.append({"role": role, "content": blocks})

    def _name_of(self, name: str, namespace: str | None) -> str:
        return name_past_call(name, namespace, self._identities)

    def _check_name(self, said: past.Said) -> None:
        if said.name:
            self.decisions.append(decide_item(f"{said.path}.name", "ignored", "messages carry no `name` here"))

    def _say(self, said: past.Said) -> None:
        self._check_name(said)
        if said.role == "user":
            self.add("user", self._mark(self._fitter.fit(said.parts)))
            return
        text = self._fitter.text(said.parts)
        if not text.strip():
            return
        if self._rules.system == "anywhere" and self.messages and self.messages[-1]["role"] != "assistant":
            self.add("system", [text_block(text)])
            return
        only = "straight after the user's turn" if self._rules.system == "anywhere" else "at the start"
        reason = f"this model takes instructions only {only}; a later one became a marked user message"
        self.decisions.append(decide_item(said.path, "degraded", reason))
        self.add("user", [text_block(f"[{said.role} instruction]\n{text}")])

    def _mark(self, parts: Sequence[Fitted]) -> list[JsonObject]:
        made = write_blocks(parts, self._fitter)
        self.marked += [block for block, marked in made if marked]
        return [block for block, _ in made]

    def _act(self, turn: past.Acted) -> None:
        if replay.is_unfinished(turn):
            replay.leave_out_unfinished(turn, self._rules, self.decisions)
            return
        content: list[JsonObject] = []
        for step in turn.steps:
            match step:
                case past.Thought():
                    content += self._think(step)
                case past.Spoken():
                    content += self._mark(step.parts or (past.Words(step.text),))
                case past.PastCall():
                    content.append(self._call(step))
        while content and content[-1]["type"] in _THOUGHTS:
            # Nothing follows it that it led to, and a message that ends in thinking is refused.
            content.pop()
            reason = "the model neither said nor called anything after this reasoning"
            self.decisions.append(decide_item(turn.thoughts[-1].path, "supported", reason))
        self.add("assistant", content)
        self._answer(turn)

    def _think(self, thought: past.Thought) -> list[JsonObject]:
        blocks = replay.thinking_blocks(thought, self._rules, self._model)
        maker = thought.extras.get(past.MODEL)
        if not blocks and maker not in (None, "", self._model):
            reason = f"the thinking blocks in it belong to the model `{maker}`"
            self.decisions.append(decide_item(f"{thought.path}.encrypted_content", "ignored", reason))
        elif not blocks:
            replay.leave_out([thought], "the model takes back only thinking blocks of its own", self.decisions)
        return [dict(block) for block in blocks]

    def _call(self, call: past.PastCall) -> JsonObject:
        name = self._name_of(call.name, call.namespace)
        self.called.setdefault(name)
        return {"type": "tool_use", "id": self._id(call.id), "name": name, "input": self._input(call)}

    def _input(self, call: past.PastCall) -> Any:
        try:
            return msgspec.json.decode(call.arguments)
        except (msgspec.DecodeError, RecursionError):  # a number beyond all numbers, for one
            reason = "the arguments hold what cannot be sent as JSON; they became text"
            self.decisions.append(repair_history(f"{call.path}.arguments", reason))
            return {"_raw": call.arguments}

    def _answer(self, turn: past.Acted) -> None:
        results: list[JsonObject] = []
        following: list[Fitted] = []
        for call, result in zip(turn.calls, turn.results, strict=True):
            inside, media = self._fitter.result(result.parts)
            blocks = write_blocks(inside, self._fitter)
            answer: JsonObject = {"type": "tool_result", "tool_use_id": self._id(call.id)}
            if len(blocks) == 1 and blocks[0][0]["type"] == "text":
                answer["content"] = blocks[0][0]["text"]
            elif blocks:
                answer["content"] = [block for block, _ in blocks]
            if result.failed or result.parts == _NO_OUTPUT:
                answer["is_error"] = True
            if any(marked for _, marked in blocks):
                self.marked.append(answer)
            results.append(answer)
            if media:
                name = self._name_of(call.name, call.namespace)
                following += [past.Words(f"[from the output of `{name}`]"), *media]
        self.add("user", [*results, *self._mark(following)])

    def _ensure_user(self) -> None:
        messages = self.messages
        if not messages or messages[0]["role"] != "user":
            messages.insert(0, {"role": "user", "content": [text_block(CONTINUE)]})
            reason = f"this protocol wants a user message first; `{CONTINUE}` was added"
            self.decisions.append(repair_history("input", reason))
        if messages[-1]["role"] == "assistant":
            # It would be taken for the beginning of the answer, which newer models refuse.
            self.add("user", [text_block(CONTINUE)])
            reason = f"the conversation ends with the assistant; `{CONTINUE}` was added"
            self.decisions.append(repair_history("input", reason))
