"""A plan and its history → what a Codex app-server is told, in its own words.

Out comes a body with the fields of `thread/start` and `turn/start`, and two of our own: `history`, the Responses items
that a new thread is given before its turn begins, and `toolNames`, from each name in Codex to that of the tool plan.

The instructions (else a leading system message) become `baseInstructions` (empty, where there are none: otherwise
Codex would put its own there), later ones stay where they are as developer messages. What the user says last is the
turn's `input`; everything before it is history. The body is byte-stable: the same plan always gives the same bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from isthmus.bridge.dialects.codex.dynamic_tools import assign_names, build_dynamic_tools
from isthmus.bridge.dialects.codex.wire import complete_tool, image_input, text_input
from isthmus.bridge.dialects.items import ItemWriter, message
from isthmus.bridge.history.fitting import Fitted
from isthmus.bridge.tools.catalog import name_past_call
from isthmus.bridge.tools.choice import render_provider_tool_choice
from isthmus.bridge.tools.declare import render_provider_tool_declarations
from isthmus.bridge.types.history import Acted, History, Image, PastTurn, Said, Words
from isthmus.bridge.types.plan import Plan, Written
from isthmus.protocol.json import JsonObject, deep_merge

_NOT_SENT: Final = ("stream", "stream_options", "reasoning")  # Codex always streams, and takes its summary at the top


def write(history: History, plan: Plan) -> Written:
    declared = render_provider_tool_declarations(plan.tools.declarations)
    named = [tool["function"]["name"] for tool in declared]
    identities, turns = plan.tools.identities, history.turns
    past = (call for turn in turns if isinstance(turn, Acted) for call in turn.calls)
    called = (name_past_call(call.name, call.namespace, identities) for call in past)
    names = assign_names([*named, *(identity.provider_name for identity in identities), *called])
    writer = _Items(plan, names)
    words = plan.instructions
    if not words and turns and isinstance(turns[0], Said) and turns[0].role == "system":
        words, turns = writer.fitter.text(turns[0].parts), turns[1:]
    instructions = "\n\n".join(text for text in (words, plan.preamble) if text)
    turn_input = writer.split_input(turns)
    body: JsonObject = {"model": plan.target.model, "baseInstructions": instructions}
    if declared:
        offered = build_dynamic_tools(declared, render_provider_tool_choice(plan.tools.choice), names)
        body["dynamicTools"] = [complete_tool(tool) for tool in offered]
        body["toolNames"] = {names[name]: name for name in named}
    if writer.items:
        body["history"] = writer.items
    body["input"] = turn_input
    if plan.contract.send is not None:
        body["outputSchema"] = plan.contract.send["schema"]
    merged = deep_merge(body, *plan.compatibility.sends, plan.extra_body)
    summary = (merged.get("reasoning") or {}).get("summary")
    kept = {name: value for name, value in merged.items() if name not in _NOT_SENT}
    return Written(kept if summary is None else {**kept, "summary": summary}, tuple(writer.decisions))


def again(plan: Plan, said: Sequence[tuple[str, str]]) -> JsonObject:
    history, turn_input = list(plan.body.get("history", ())), plan.body["input"]
    for answer, words in said:
        if turn_input:
            history.append(user_item(turn_input))
        if answer:
            history.append(spoken_item(answer))
        turn_input = [text_input(words)]
    return {**plan.body, "history": history, "input": turn_input}


def user_item(turn_input: Iterable[JsonObject]) -> JsonObject:
    """A turn's input as the history item that it becomes."""
    return message("user", [_from_input(part) for part in turn_input])


def spoken_item(text: str) -> JsonObject:
    return message("assistant", [{"type": "output_text", "text": text}])


class _Items(ItemWriter):
    def __init__(self, plan: Plan, names: Mapping[str, str]) -> None:
        super().__init__(plan)
        self._names = names

    def split_input(self, turns: Sequence[PastTurn]) -> list[JsonObject]:
        """What the user says last opens the turn; a turn without input goes on from the history as it stands."""
        last = turns[-1] if turns else None
        if isinstance(last, Said) and last.role == "user" and not last.name:
            parts = self.fitter.fit(last.parts)
            if parts and not any(_has_detail(part) for part in parts):  # an input cannot say how closely to look
                self.write(turns[:-1])
                return [_as_input(part) for part in parts]
        self.write(turns)
        return []

    def name_of(self, name: str, namespace: str | None) -> str:
        flat = super().name_of(name, namespace)
        return self._names.get(flat, flat)

    def role(self, role: str) -> str:
        return "user" if role == "user" else "developer"  # Codex drops `system` messages without a word

    def part(self, part: Fitted) -> JsonObject:
        """The message rules let text and data URLs through, nothing else."""
        detail = {"detail": part.detail} if isinstance(part, Image) and _has_detail(part) else {}
        return _from_input(_as_input(part)) | detail

    def spoken(self, words: Words) -> JsonObject:
        return {"type": "output_text", "text": words.text}


def _has_detail(part: Fitted) -> bool:
    return isinstance(part, Image) and part.detail not in ("", "auto")


def _as_input(part: Fitted) -> JsonObject:
    if isinstance(part, Image):
        return image_input(part.url)
    return text_input(part.text if isinstance(part, Words) else "")


def _from_input(part: JsonObject) -> JsonObject:
    """A turn's input as the content part that Codex makes of it."""
    if part["type"] == "image":
        return {"type": "input_image", "image_url": part["url"]}
    return {"type": "input_text", "text": part["text"]}
