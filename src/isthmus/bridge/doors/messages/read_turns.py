"""Turns of a Messages request → Responses items, with the way back to the block that each came from.

One turn becomes one or several items. Results of tools come first in what a user says, whatever order they stand in;
who called what is found by id. An instruction between the turns stays where it is: moved to the front it would change
the prefix that is cached. Thinking comes back as a reasoning item: its signature counts if it is an envelope of ours,
and holds then what the vendor needs again; of any other only the words are read.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import msgspec

from isthmus.bridge.doors.messages.read_blocks import BlockReader, Placed, blocks_of, text_in, wrong_type
from isthmus.bridge.envelope import is_envelope
from isthmus.bridge.history.parts import BREAKPOINT
from isthmus.errors import RequestRefused
from isthmus.protocol.json import JsonObject

BILLING: Final = "x-anthropic-billing-header:"
_ROLES: Final = ("user", "assistant", "system")
_RAN_HERE: Final = re.compile(r"srvtoolu_(?P<item>ws_[0-9a-f]+(?:r\d+)?_c\d+)")
"""The id of a search that ran here (see `assemble.managed`)."""
_ASKED: Final = ("query", "queries", "url", "pattern")


class Origin(NamedTuple):
    """Where an item came from, and each of its parts."""

    path: str
    parts: tuple[str, ...] = ()


class TurnReader(BlockReader):
    def __init__(self) -> None:
        super().__init__()
        self.items: list[JsonObject] = []
        self.origins: list[Origin] = []
        self.effort: tuple[str, str] | None = None
        """The last effort that an instruction between the turns asks for, and where."""
        self._searches: dict[str, JsonObject] = {}
        """What searches that ran here looked for, by the id of their block."""

    def lead(self, system: Any) -> str:
        """The system prompt: its text; or nothing, where it has marks and became an item, which can carry them."""
        if isinstance(system, str):
            return system
        placed: list[Placed] = []
        for index, block in enumerate(blocks_of(system, "system")):
            path, text = f"system[{index}]", block.get("text")
            if isinstance(text, str) and text.startswith(BILLING):
                # It changes with every version of the client, and with it all that a cache keeps behind it
                # (llama.cpp#21793, vllm#36829).
                self.pass_over(path, "a line for the vendor's own accounts, which would spoil prompt caches")
                continue
            placed += self._read(block, path)
        if any(BREAKPOINT in one.part for one in placed):
            self._add({"type": "message", "role": "system", "content": [one.part for one in placed]}, "system", placed)
            return ""
        return "\n\n".join(one.part["text"] for one in placed if one.part.get("text"))

    def take(self, turns: Sequence[Any]) -> None:
        for index, turn in enumerate(turns):
            path = f"messages[{index}]"
            if not isinstance(turn, dict):
                raise wrong_type(path, "an object")
            if turn.get("role") not in _ROLES:
                said = f"`{path}.role` is `{turn.get('role')}`; use user, assistant or system"
                raise RequestRefused(said, code="invalid_value", param=f"{path}.role")
            if "content" not in turn:
                raise RequestRefused(
                    f"`{path}.content` is missing", code="missing_required_parameter", param=f"{path}.content"
                )
            self._take(turn, turn["role"], path)

    def mark_last(self, mark: JsonObject) -> None:
        """`cache_control` of the request itself: the last block that can carry a mark carries it."""
        for index in range(len(self.items) - 1, -1, -1):
            item = self.items[index]
            field = "output" if item["type"] == "function_call_output" else "content"
            if item["type"] in ("message", "function_call_output") and item[field]:
                parts = item[field]
                if isinstance(parts, str):
                    parts = [{"type": "input_text", "text": parts}]
                    self.origins[index] = Origin(self.origins[index].path, (f"{self.origins[index].path}.content",))
                placed = self.mark({"cache_control": mark}, [Placed(part, "") for part in parts], "")
                self.items[index] = {**item, field: [one.part for one in placed]}
                return
        self.pass_over("cache_control", "there is nothing here that could be cached")

    def _take(self, turn: JsonObject, role: str, path: str) -> None:
        content, where = turn["content"], f"{path}.content"
        if role == "assistant":
            if isinstance(content, str):
                content = [{"type": "text", "text": content}] if content else []
            self._assistant(blocks_of(content, where), where)
        elif role == "system":
            self._instruct(turn, path)
            self._say("developer", self.read(content, where), path)
        elif isinstance(content, str):
            self._say("user", self.read(content, where), path)
        else:
            self._user(blocks_of(content, where), path)

    def _instruct(self, turn: JsonObject, path: str) -> None:
        options = turn.get("output_config")
        if isinstance(options, dict) and isinstance(options.get("effort"), str):
            self.effort = (options["effort"], f"{path}.output_config.effort")
        if turn.get("clear_at") is not None:
            self.decide(f"{path}.clear_at", "ignored", "an instruction stays for as long as the client sends it")

    def _user(self, blocks: Sequence[JsonObject], path: str) -> None:
        placed: list[Placed] = []
        for index, block in enumerate(blocks):
            where = f"{path}.content[{index}]"
            if block.get("type") == "tool_result":
                self._result(block, where)
            else:
                placed += self._read(block, where)
        self._say("user", placed, path)

    def _say(self, role: str, placed: list[Placed], path: str) -> None:
        if placed:
            self._add({"type": "message", "role": role, "content": [one.part for one in placed]}, path, placed)

    def _result(self, block: JsonObject, path: str) -> None:
        call_id = text_in(block, "tool_use_id", path)
        placed = self.read(block.get("content"), f"{path}.content")
        placed = self.mark(block, placed, path)
        output: Any = [one.part for one in placed]
        if not output or (len(output) == 1 and output[0].keys() == {"type", "text"}):
            output = output[0]["text"] if output else ""
        failed = {"is_error": True} if block.get("is_error") is True else {}
        self._add({"type": "function_call_output", "call_id": call_id, "output": output, **failed}, path, placed)

    def _assistant(self, blocks: Sequence[JsonObject], path: str) -> None:
        said: list[Placed] = []
        for index, block in enumerate(blocks):
            where, kind = f"{path}[{index}]", block.get("type")
            if kind in ("text", "image", "document"):
                said += self._spoken(block, where)
                continue
            self._speak(said)
            said = []
            self._act(block, where)
        self._speak(said)

    def _spoken(self, block: JsonObject, path: str) -> list[Placed]:
        if block.get("type") != "text":
            return self._read(block, path)  # the history says what becomes of it
        part = {"type": "output_text", "text": text_in(block, "text", path)}
        return self.mark(block, [Placed(part, path)], path)

    def _speak(self, said: list[Placed]) -> None:
        if said:
            content = [one.part for one in said]
            self._add({"type": "message", "role": "assistant", "content": content}, said[0].path, said)

    def _act(self, block: JsonObject, path: str) -> None:
        if isinstance(block.get("cache_control"), dict):
            reason = "only texts, images, documents and results can be marked; what comes before the next mark counts"
            self.pass_over(f"{path}.cache_control", reason)
        match block.get("type"):
            case "tool_use":
                given = block.get("input")
                arguments = msgspec.json.encode({} if given is None else given).decode()
                call_id, name = text_in(block, "id", path), text_in(block, "name", path)
                self._add({"type": "function_call", "call_id": call_id, "name": name, "arguments": arguments}, path)
            case "thinking":
                self._think(path, block.get("thinking"), block.get("signature"), "signature")
            case "redacted_thinking":
                self._think(path, "", block.get("data"), "data")
            case "server_tool_use" | "web_search_tool_result" if found := self._hosted(block):
                self._add(found, path)
            case "server_tool_use" if block.get("id") in self._searches:
                pass  # it is read with its result
            case str(kind) if kind == "server_tool_use" or kind.endswith("_tool_result"):
                # As for other clients: a note of it would only teach the model to write such notes.
                self.decide(path, "ignored", "what a past hosted tool found is in the answer that followed it")
            case kind:
                self.decide(path, "ignored", f"content block type `{kind}` is not known")

    def _hosted(self, block: JsonObject) -> JsonObject | None:
        """A search that ran here, once its result is there: known by the id that it was told with."""
        id = block.get("id") if block["type"] == "server_tool_use" else block.get("tool_use_id")
        ours = _RAN_HERE.fullmatch(id) if isinstance(id, str) else None
        if ours is None:
            return None
        if block["type"] == "server_tool_use":
            self._searches[ours[0]] = block.get("input") or {}
            return None
        if (asked := self._searches.get(ours[0])) is None:
            return None
        found = block.get("content")
        pages = [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []
        action = {"type": "search", **{name: asked[name] for name in _ASKED if asked.get(name)}}
        item: JsonObject = {"type": "web_search_call", "id": ours["item"], "action": action}
        item["status"] = "completed" if isinstance(found, list) else "failed"
        action["sources"] = [{"type": "url", "url": page.get("url")} for page in pages if page.get("url")]
        sealed = pages[0].get("encrypted_content") if pages else None
        return {**item, "encrypted_content": sealed} if isinstance(sealed, str) and sealed else item

    def _think(self, path: str, text: Any, signature: Any, field: str) -> None:
        item: JsonObject = {"type": "reasoning", "summary": []}
        if isinstance(text, str) and text:
            item["content"] = [{"type": "reasoning_text", "text": text}]
        if isinstance(signature, str) and is_envelope(signature):
            item["encrypted_content"] = signature
        elif signature:
            reason = "it was not signed here, so nobody here could take it for the model's own; only the words are read"
            self.decide(f"{path}.{field}", "ignored", reason)
        if "content" in item or "encrypted_content" in item:
            self._add(item, path)
        elif not signature:
            self.decide(path, "supported", "it holds neither words nor a signature; there is nothing to send")

    def _add(self, item: JsonObject, path: str, placed: Sequence[Placed] = ()) -> None:
        self.items.append(item)
        self.origins.append(Origin(path, tuple([one.path for one in placed])))
