"""Tools and tool choice of a Messages request → as Responses spells them, each with its place in the request.

| tool | becomes |
|---|---|
| without a type, or `custom` | a function |
| `defer_loading` | a function: the client has searched and loaded it; a placeholder is left out |
| `bash_…`, `text_editor_…`, `memory_…`, `computer_…` | a function with the published schema, under its own name |
| `web_search_…` | the hosted `web_search`, where somebody runs one; else the request is refused |
| `tool_search_tool_…` | nothing: every tool is declared at once |
| any other type | refused: only its vendor could run it |
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from isthmus.bridge.diagnostics import Action, CompatibilityDecision
from isthmus.bridge.doors.messages.published import PUBLISHED
from isthmus.bridge.doors.messages.read_blocks import text_in, wrong_type
from isthmus.bridge.tools.declare import TOOL_CODE
from isthmus.protocol.json import JsonObject, without_nulls
from isthmus.protocol.messages import MessagesToolChoice

PLACEHOLDER: Final = "DeferredToolPlaceholder"
_DATED: Final = re.compile(r"^(?P<kind>[a-z_]+?)(?:_(?:regex|bm25))?_\d{8}$")
_NO_PARAMETERS: Final[JsonObject] = {"type": "object", "properties": {}}


class ToolReader:
    def __init__(self) -> None:
        self.tools: list[JsonObject] = []
        self.paths: list[str] = []
        """Where each of these stands in the request; those that were left out follow behind."""
        self.decisions: list[CompatibilityDecision] = []
        self._hosted: dict[str, str] = {}
        """The names of tools that the provider runs, with their type."""

    def take(self, tools: Sequence[Any]) -> None:
        for index, tool in enumerate(tools):
            path = f"tools[{index}]"
            if not isinstance(tool, dict):
                raise wrong_type(path, "an object")
            made = self._translate(tool, path)
            if made is not None:
                self.tools.append(made)
                self.paths.append(path)
        self._renumber(len(tools))

    def _renumber(self, count: int) -> None:
        """The planner counts the tools that it gets, so all that was decided here counts like that as well."""
        given = [f"tools[{index}]" for index in range(count)]
        self.paths += [path for path in given if path not in self.paths]
        counted = {path: f"tools[{index}]" for index, path in enumerate(self.paths)}
        for index, decision in enumerate(self.decisions):
            path, bracket, rest = decision.path.partition("]")
            moved = f"{counted[path + bracket]}{rest}"
            self.decisions[index] = msgspec.structs.replace(decision, path=moved)

    def choose(self, choice: MessagesToolChoice | None) -> JsonObject:
        """The fields that a choice becomes."""
        if choice is None:
            return {}
        kind, name = choice["type"], choice.get("name")
        if not self.tools and kind in ("auto", "none"):
            self._decide("tool_choice", "supported", "there is no tool to choose from")
            return {}
        chosen: str | JsonObject = {"any": "required"}.get(kind, kind)
        if kind == "tool":
            hosted = self._hosted.get(str(name))
            chosen = {"type": hosted} if hosted else {"type": "function", "name": name}
        alone = {"parallel_tool_calls": False} if choice.get("disable_parallel_tool_use") else {}
        return {"tool_choice": chosen, **alone}

    def _translate(self, tool: JsonObject, path: str) -> JsonObject | None:
        kind = tool.get("type")
        if kind is None or kind == "custom":
            return self._function(tool, path)
        if not isinstance(kind, str):
            raise wrong_type(f"{path}.type", "a string")
        self._note_mark(tool, path)
        found = _DATED.match(kind)
        plain = found["kind"] if found is not None else kind
        if plain == "tool_search_tool":
            self._decide(path, "degraded", "nothing is searched for: every tool of the request is declared at once")
            return None
        if plain == "web_search":
            self._hosted[text_in(tool, "name", path)] = plain
            return _web_search(tool)
        if plain in PUBLISHED:
            self._decide(f"{path}.type", "degraded", f"`{kind}` is sent as a function with its published schema")
            words, schema = PUBLISHED[plain](tool)
            name = text_in(tool, "name", path)
            return {"type": "function", "name": name, "description": words, "parameters": schema, "strict": False}
        reason = f"nothing here runs `{kind}`; leave it out, or send a tool of your own"
        self._decide(path, "rejected", reason)
        return None

    def _function(self, tool: JsonObject, path: str) -> JsonObject | None:
        name = text_in(tool, "name", path)
        self._note_mark(tool, path)
        if tool.get("defer_loading") and name == PLACEHOLDER:
            self._decide(path, "supported", "it stands for tools that the client has not loaded yet; nothing to call")
            return None
        callers = tool.get("allowed_callers")
        if isinstance(callers, list) and callers and "direct" not in callers:
            where = f"{path}.allowed_callers"
            self._decide(where, "rejected", "no programs run here that could call it; allow `direct` calls")
        schema = tool.get("input_schema", _NO_PARAMETERS)
        if not isinstance(schema, dict):
            raise wrong_type(f"{path}.input_schema", "an object")
        made: JsonObject = {
            "type": "function",
            "name": name,
            "parameters": {key: value for key, value in schema.items() if key != "$schema"},
            "strict": bool(tool.get("strict")),
        }
        if words := self._describe(tool, path):
            made["description"] = words
        return made

    def _describe(self, tool: JsonObject, path: str) -> str:
        words, examples = tool.get("description"), tool.get("input_examples")
        described = words if isinstance(words, str) else ""
        if isinstance(examples, list) and examples:
            self._decide(f"{path}.input_examples", "degraded", "examples have no field here; they end the description")
            shown = [msgspec.json.encode(example).decode() for example in examples]
            return "\n".join([described, "", "Examples of its input:", *shown]).strip()
        return described

    def _note_mark(self, tool: Mapping[str, Any], path: str) -> None:
        if isinstance(tool.get("cache_control"), dict):
            reason = "tools carry no mark of their own here; one on the system prompt or a later turn covers them"
            mark = f"{path}.cache_control"
            self.decisions.append(CompatibilityDecision(mark, "ignored", reason, code=TOOL_CODE, harmless=True))

    def _decide(self, path: str, action: Action, reason: str) -> None:
        self.decisions.append(CompatibilityDecision(path, action, reason, code=TOOL_CODE))


def _web_search(tool: JsonObject) -> JsonObject:
    filters = {name: tool[name] for name in ("allowed_domains", "blocked_domains") if tool.get(name)}
    options = {name: tool.get(name) for name in ("user_location", "max_uses")}
    return without_nulls({"type": "web_search", "filters": filters or None, **options})
