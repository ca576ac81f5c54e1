"""Turns → Responses items, in the order in which they happened: what native endpoints and Codex both take.

In: a `History` and the plan. Out: input items. Thoughts, messages and calls stay apart and in place, an endpoint's
own sealed reasoning goes back where it stood, and results follow the turn that made the calls. A dialect changes
how a name, a role or a part is spelled, nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence

from isthmus.bridge.diagnostics import CompatibilityDecision, decide_item
from isthmus.bridge.history import replay
from isthmus.bridge.history.fitting import Fitted, Fitter
from isthmus.bridge.history.parts import BREAKPOINT
from isthmus.bridge.tools.catalog import name_past_call
from isthmus.bridge.types import history as past
from isthmus.bridge.types.plan import Plan
from isthmus.protocol.json import JsonObject


class ItemWriter:
    def __init__(self, plan: Plan) -> None:
        self.items: list[JsonObject] = []
        self.decisions: list[CompatibilityDecision] = []
        self.fitter = Fitter(plan.rules, self.name_of, self.decisions)
        self._rules = plan.rules
        self._identities = plan.tools.identities
        self._custom = {one.provider_name for one in plan.tools.identities if one.provider_type == "custom"}

    def write(self, turns: Sequence[past.PastTurn]) -> None:
        for turn in turns:
            match turn:
                case past.Said():
                    self.say(turn)
                case past.Acted():
                    self._act(turn)
                case past.Kept():
                    self.items.append(dict(turn.item))

    def say(self, said: past.Said) -> None:
        if said.name:
            self.decisions.append(decide_item(f"{said.path}.name", "ignored", "messages carry no `name` here"))
        apart = said.role == "user" or self._marked(said.parts)
        parts = self.fitter.fit(said.parts) if apart else [past.Words(self.fitter.text(said.parts))]
        self.items.append(message(self.role(said.role), [self._mark(part) for part in parts]))

    def name_of(self, name: str, namespace: str | None) -> str:
        return name_past_call(name, namespace, self._identities)

    def role(self, role: str) -> str:
        return role

    def part(self, part: Fitted) -> JsonObject:
        match part:
            case past.Words():
                return {"type": "input_text", "text": part.text}
            case past.Image():
                return {"type": "input_image", "image_url": part.url, "detail": part.detail or "auto"}
            case past.File() if part.video:
                return {"type": "input_video", "video_url": part.data or part.url}
            case past.File():
                named = {"filename": part.name} if part.name else {}
                return {"type": "input_file", **named, "file_data": part.data}
            case past.Audio():
                return {"type": "input_audio", "input_audio": {"data": part.data, "format": part.format}}

    def spoken(self, words: past.Words) -> JsonObject:
        if words.refusal:
            return {"type": "refusal", "refusal": words.text}
        return {"type": "output_text", "text": words.text, "annotations": [dict(each) for each in words.annotations]}

    def _call(self, call: past.PastCall) -> JsonObject:
        name = self.name_of(call.name, call.namespace)
        if name not in self._custom:
            return {"type": "function_call", "call_id": call.id, "name": name, "arguments": call.arguments}
        # Calls of native custom tools get their free text back.
        free_text = call.arguments if call.free_text is None else call.free_text
        return {"type": "custom_tool_call", "call_id": call.id, "name": name, "input": free_text}

    # Breakpoints of the prompt cache, for endpoints that know them

    def _marked(self, parts: Sequence[past.Part]) -> bool:
        return self._rules.cache_breakpoints and any(getattr(part, "breakpoint", None) for part in parts)

    def _mark(self, part: Fitted) -> JsonObject:
        if isinstance(part, past.Audio) or not self._marked((part,)):
            return self.part(part)
        return {**self.part(part), BREAKPOINT: part.breakpoint}

    def _unmark(self, step: past.Spoken, parts: Sequence[past.Words]) -> None:
        for index, words in enumerate(parts):
            if self._marked((words,)):
                reason = "what the assistant said carries no breakpoint here; the next one behind it counts"
                path = f"{step.path}.content[{index}].{BREAKPOINT}"
                self.decisions.append(decide_item(path, "ignored", reason, harmless=True))

    def _act(self, turn: past.Acted) -> None:
        if replay.is_unfinished(turn):
            replay.leave_out_unfinished(turn, self._rules, self.decisions)
            return
        answered: list[JsonObject] = []
        for step in _in_order(turn.steps):
            match step:
                case past.Thought():
                    self._think(step, replay.wants_reasoning(turn, self._rules))
                case past.Spoken():
                    parts = step.parts or (past.Words(step.text),)
                    item = message("assistant", [self.spoken(words) for words in parts])
                    self._unmark(step, parts)
                    self.items.append({**item, "phase": step.phase} if step.phase and self._rules.phases else item)
                case past.Kept():
                    self.items.append(dict(step.item))
                case past.PastCall():
                    answered.append(self._call(step))
                    self.items.append(answered[-1])
        self._results(turn, answered)

    def _think(self, thought: past.Thought, wanted: bool) -> None:
        sealed = thought.extras.get(self._rules.replay_extras)
        if sealed:
            self.items += sealed if isinstance(sealed, list) else [sealed]
        elif wanted and thought.text:
            replay.tell_summarised([thought], self.decisions)
            content = [{"type": "reasoning_text", "text": thought.text}]
            self.items.append({"type": "reasoning", "summary": [], "content": content})
        else:
            replay.leave_out([thought], replay.UNWANTED, self.decisions)

    def _results(self, turn: past.Acted, answered: Sequence[JsonObject]) -> None:
        following: list[Fitted] = []
        for item, result in zip(answered, turn.results, strict=True):
            inside, media = self.fitter.result(self.fitter.told(result))
            texts = [part.text for part in inside if isinstance(part, past.Words)]
            whole = len(texts) == len(inside) and not self._marked(inside)
            output = past.join_texts(texts) if whole else [self._mark(part) for part in inside]
            self.items.append({"type": f"{item['type']}_output", "call_id": item["call_id"], "output": output})
            if media:
                following += [past.Words(f"[from the output of `{item['name']}`]"), *media]
        if following:
            self.items.append(message("user", [self.part(part) for part in following]))


def _in_order(steps: tuple[past.Step, ...]) -> tuple[past.Step, ...]:
    """Vendor state that came without a word of reasoning closes the turn it belongs to; the vendor wants it first."""
    end = len(steps)
    while end and isinstance(steps[end - 1], past.Thought):
        end -= 1
    begin = next((index for index, step in enumerate(steps) if not isinstance(step, past.Thought)), end)
    return steps if end == len(steps) else (*steps[:begin], *steps[end:], *steps[begin:end])


def message(role: str, content: list[JsonObject]) -> JsonObject:
    return {"type": "message", "role": role, "content": content}
