"""Tool calls on their way out: each restored to the client's own type from its first event on.

| the client's tool | opens | streams |
|---|---|---|
| function (or unknown) | at once, `function_call` | argument text as it comes |
| custom | when its argument text is surely `{"input": "…`, `custom_tool_call` | the decoded input as it comes |
| shell, local_shell, apply_patch, tool_search | when its arguments are whole | nothing, or its commands |

The last row waits because its type is only certain when the arguments can be read: an item never
changes its type between `added` and `done`. A call that was cut off is never closed as complete: it is
`incomplete` in the response, and a custom one gets no `output_item.done` at all, because clients run
free text as soon as they see that event.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

import msgspec

from isthmus.bridge.assemble.emitter import Emitter
from isthmus.bridge.assemble.retell import tell_commands
from isthmus.bridge.diagnostics import CompatibilityDiagnostic, notice
from isthmus.bridge.tools.custom_input import CustomInputStream
from isthmus.bridge.tools.examine import Examined, ExamineInput, examination_of
from isthmus.bridge.tools.restore import restore_tool_call
from isthmus.bridge.types.tools import ProviderCall, ToolIdentity, ToolIdentityMap
from isthmus.protocol.json import JsonObject

_PREFIXES: Final = {
    "function_call": "fc",
    "custom_tool_call": "ctc",
    "shell_call": "sh",
    "local_shell_call": "lsh",
    "apply_patch_call": "apc",
    "tool_search_call": "tsc",
}

Place = Callable[[str], tuple[str, int]]
"""Gives a new item its id (from a prefix) and its output index."""


class CallBlock:
    """One call, from its first fragment to its last event."""

    __slots__ = (
        "_emitter",
        "_identities",
        "_pieces",
        "_place",
        "_stream",
        "_streamed",
        "call_id",
        "examined",
        "identity",
        "item_id",
        "name",
        "open",
        "output_index",
    )

    def __init__(
        self,
        call_id: str,
        name: str,
        identity: ToolIdentity | None,
        identities: ToolIdentityMap,
        emitter: Emitter,
        place: Place,
    ) -> None:
        self.call_id = call_id
        self.name = name
        self.identity = identity
        self._identities = identities
        self._emitter = emitter
        self._place = place
        self._pieces: list[str] = []
        self._streamed: list[str] = []
        self.open = True
        self.examined: Examined | None = None
        """The verdict on a custom tool's input, once it is known."""
        self.item_id = ""
        self.output_index = -1
        custom = identity is not None and identity.requested_type == "custom"
        self._stream = CustomInputStream(identity.tool) if custom and identity is not None else None
        if self._opens_at_once:
            self._open(self._empty_function_call())

    @property
    def _opens_at_once(self) -> bool:
        return self.identity is None or self.identity.requested_type == "function"

    @property
    def visible(self) -> bool:
        return self.output_index >= 0

    @property
    def text(self) -> str:
        """The argument text so far."""
        if len(self._pieces) > 1:
            self._pieces = ["".join(self._pieces)]
        return self._pieces[0] if self._pieces else ""

    @property
    def streamed(self) -> str:
        """What the client has seen of it."""
        return "".join(self._streamed)

    @property
    def whole(self) -> bool:
        """Whether the arguments so far are one complete JSON value (or, for free text, may be)."""
        try:
            msgspec.json.decode(self.text)
        except (msgspec.DecodeError, RecursionError):
            return False
        return True

    @property
    def examination(self) -> ExamineInput | None:
        """What has to be examined before this call can be closed as whole; `None`: nothing, or it was."""
        if self._stream is None or self.identity is None or self.examined is not None:
            return None
        return examination_of(self.identity.tool, self.text)

    def append(self, text: str, replace: bool) -> None:
        if replace:
            # Told anew: what was streamed stays true as far as the new text agrees with it.
            before = self.text
            self._pieces = [text]
            text = text[len(before) :] if text.startswith(before) else ""
            if not text:
                return
        else:
            self._pieces.append(text)
        if self._stream is not None:
            self._stream_input(text)
        elif self.visible:
            self._delta("response.function_call_arguments.delta", text)

    def close(self, *, cut: bool) -> tuple[JsonObject, tuple[CompatibilityDiagnostic, ...]]:
        """The finished item and its last events. `cut`: the reply ended before the call did."""
        self.open = False
        if cut:
            return self._close_cut()
        name = self.identity.provider_name if self.identity is not None else self.name
        restored = restore_tool_call(
            ProviderCall(self.call_id, name, self.text),
            self._identities,
            item_id=self.item_id,
            status="completed",
            examined=self.examined,
        )
        item = restored.item
        diagnostics = restored.diagnostics
        if self._stream is not None and self.visible and item["type"] != "custom_tool_call":
            item = self._custom_item(self.streamed, "completed")
        if not self.visible:
            self._open(_in_progress(item))
        item["id"] = self.item_id
        self._finish(item)
        return item, tuple(replace(said, path=f"output.{self.item_id}") for said in diagnostics)

    def _close_cut(self) -> tuple[JsonObject, tuple[CompatibilityDiagnostic, ...]]:
        said = notice(
            "bridge.tool.call_incomplete", "output", f"the call to `{self.name}` was cut off before it was whole"
        )
        if self._stream is not None and self.visible:
            return self._custom_item(self.streamed, "incomplete"), (said,)
        if not self.visible:
            self._open(self._empty_function_call())
            self._delta("response.function_call_arguments.delta", self.text)
        item = {**self._empty_function_call(), "id": self.item_id, "arguments": self.text, "status": "incomplete"}
        self._emit_item_done("response.function_call_arguments.done", "arguments", item)
        return item, (said,)

    def _stream_input(self, text: str) -> None:
        assert self._stream is not None
        ready = self._stream.feed(text)
        if not ready:
            return
        if not self.visible:
            self._open(self._custom_item("", "in_progress"))
        self._delta("response.custom_tool_call_input.delta", ready)

    def _finish(self, item: JsonObject) -> None:
        match item["type"]:
            case "function_call":
                self._rest("response.function_call_arguments.delta", item["arguments"])
                self._emit_item_done("response.function_call_arguments.done", "arguments", item)
            case "custom_tool_call":
                self._rest("response.custom_tool_call_input.delta", item["input"])
                self._emit_item_done("response.custom_tool_call_input.done", "input", item)
            case kind:
                if kind == "shell_call":
                    tell_commands(self._emitter, self.output_index, item["action"].get("commands") or ())
                self._emitter.emit("response.output_item.done", output_index=self.output_index, item=item)

    def _rest(self, event: str, final: str) -> None:
        streamed = self.streamed
        if final.startswith(streamed) and len(final) > len(streamed):
            self._delta(event, final[len(streamed) :])

    def _emit_item_done(self, event: str, field: str, item: JsonObject) -> None:
        self._emitter.emit(event, item_id=self.item_id, output_index=self.output_index, **{field: item[field]})
        self._emitter.emit("response.output_item.done", output_index=self.output_index, item=item)

    def _delta(self, event: str, text: str) -> None:
        self._streamed.append(text)
        emitter = self._emitter
        emitter.events.append(
            {
                "type": event,
                "sequence_number": emitter.sequence,
                "item_id": self.item_id,
                "output_index": self.output_index,
                "delta": text,
            }
        )
        emitter.sequence += 1

    def _open(self, item: JsonObject) -> None:
        self.item_id, self.output_index = self._place(_PREFIXES.get(item["type"], "item"))
        item["id"] = self.item_id
        self._emitter.emit("response.output_item.added", output_index=self.output_index, item=item)

    def _empty_function_call(self) -> JsonObject:
        known = self.identity
        item: JsonObject = {
            "type": "function_call",
            "id": self.item_id,
            "call_id": self.call_id,
            "name": known.requested_name if known is not None else self.name,
            "arguments": "",
            "status": "in_progress",
        }
        if known is not None and known.namespace and known.namespace != "functions":
            item["namespace"] = known.namespace
        return item

    def _custom_item(self, input: str, status: str) -> JsonObject:
        item = self._empty_function_call()
        del item["arguments"]
        return {**item, "type": "custom_tool_call", "input": input, "status": status}


def _in_progress(item: JsonObject) -> JsonObject:
    """How an item looks when it is first announced: same type, nothing in it yet."""
    empty: JsonObject = {**item, "status": "in_progress"}
    match item["type"]:
        case "function_call":
            empty["arguments"] = ""
        case "custom_tool_call":
            empty["input"] = ""
        case "shell_call":
            empty["action"] = {**item["action"], "commands": []}
    return empty
