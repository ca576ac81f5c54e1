"""One call, from its first fragment to its last event, restored to the client's own type from the beginning.

| the client's tool | opens | streams |
|---|---|---|
| function (or unknown) | at once, `function_call` | argument text as it comes |
| custom | when its argument text is surely `{"input": "…`, `custom_tool_call` | the decoded input as it comes |
| shell, local_shell, apply_patch, tool_search | when its arguments are whole | nothing, or its commands |
| one that runs here | likewise, and is told by `managed` | nothing |

The last row waits because its type is only certain when the arguments can be read: an item never changes its type
between `added` and `done`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Literal

from msgspec.structs import replace

from isthmus.bridge.assemble.output import Output
from isthmus.bridge.deltas import CallArguments
from isthmus.bridge.diagnostics import CompatibilityDiagnostic, notice
from isthmus.bridge.tools.custom_input import CustomInput, CustomInputReader, read_custom_input
from isthmus.bridge.tools.examine import Examined, ExamineInput, examination_of
from isthmus.bridge.tools.restore import restore_tool_call, shape_call
from isthmus.bridge.tools.search import runs_here, search_tools
from isthmus.bridge.types.tools import ProviderCall, ToolDeclarationPlan, ToolIdentity
from isthmus.bridge.wholeness import Pieces
from isthmus.protocol.events import CommandPlace, ItemPlace
from isthmus.protocol.items import CALL_PREFIXES, CallItem, HostedItem, Status, ToolSearchOutput

_TextCall = Literal["function_call", "custom_tool_call"]
_DeltaType = Literal["response.function_call_arguments.delta", "response.custom_tool_call_input.delta"]
_TEXTS: Final = {
    "function_call": ("arguments", "response.function_call_arguments"),
    "custom_tool_call": ("input", "response.custom_tool_call_input"),
}
"""Calls that stream a text: its field, and its events."""
Unspoken = CallItem | ToolSearchOutput | HostedItem


class Call:
    __slots__ = (
        *("_event", "_identity", "_output", "_pieces", "_reader", "_streamed", "_unshown"),
        *("call_id", "examined", "item_id", "name", "output_index"),
    )

    def __init__(self, call_id: str, name: str, identity: ToolIdentity | None, output: Output) -> None:
        self.call_id, self.name, self._identity, self._output = call_id, name, identity, output
        self._event: _DeltaType = "response.function_call_arguments.delta"
        self._pieces = Pieces()
        self._streamed: list[str] = []
        self.examined: Examined | None = None
        """The verdict on a custom tool's input, once it is known."""
        self.item_id, self.output_index = "", -1
        self._reader: CustomInputReader | None = None
        self._unshown = ""
        """Custom input that is certain, and that nobody has seen."""
        if identity is None or identity.requested_type == "function":
            self._open(self._shape("function_call", "", "in_progress"))
        elif identity.requested_type == "custom":
            self._reader = CustomInputReader(identity.tool)
            self._event = "response.custom_tool_call_input.delta"

    @property
    def visible(self) -> bool:
        return self.output_index >= 0

    @property
    def searches(self) -> bool:
        tool = self._identity
        return tool is not None and runs_here(tool.requested_type, tool.tool)

    @property
    def runs(self) -> ToolIdentity | None:
        """The tool, if it runs here."""
        return self._identity if self._identity is not None and self._identity.managed is not None else None

    @property
    def text(self) -> str:
        return self._pieces.text

    @property
    def begun(self) -> bool:
        """Whether there is something of it that a client could use."""
        return self.visible or bool(self._unshown)

    @property
    def whole(self) -> bool:
        """Whether the arguments so far are one complete JSON value (or, for free text, may be)."""
        return self._pieces.whole

    @property
    def breaks_off(self) -> bool:
        """Whether half of a custom input was shown, and the other half never came."""
        found = self._read() if self.visible else None
        return found is not None and found.shape == "cut"

    @property
    def examination(self) -> ExamineInput | None:
        """What has to be examined before this call can be closed as whole; `None`: nothing, or it was."""
        found = self._read() if self.examined is None else None
        # What is cut falls back or stays open: there is nothing to mend.
        if found is None or found.shape == "cut" or self._identity is None:
            return None
        return examination_of(self._identity.tool, found.text)

    def append(self, delta: CallArguments) -> None:
        text, anew = delta.text, False
        if delta.replace:
            # Told anew: what was streamed stays true as far as the new text agrees with it.
            before, self._pieces = self.text, Pieces(text)
            anew = not text.startswith(before)
            text = text if anew else text[len(before) :]
            if not (text or anew):
                return
        else:
            self._pieces.append(text)
        if self._reader is not None:
            if anew and self._identity is not None:
                self._reader = CustomInputReader(self._identity.tool)
            text = self._reader.feed(text)
            if delta.whole:
                # Told when it closes: it may still turn out to be no custom call.
                self._unshown = text
                return
            if not text or (anew and self.visible):
                return
            if not self.visible:
                self._open(self._shape("custom_tool_call", "", "in_progress"))
        elif anew or self.output_index < 0:
            return
        self._streamed.append(text)
        output = self._output
        output.events.append(
            {
                "type": self._event,
                "sequence_number": output.sequence,
                "item_id": self.item_id,
                "output_index": self.output_index,
                "delta": text,
            }
        )
        output.sequence += 1

    def says(self, delta: CallArguments) -> bool:
        """Whether more text for a call that is closed says nothing new."""
        return not delta.text.strip() or (delta.replace and delta.text == self.text)

    def close(self, deferred: Sequence[ToolDeclarationPlan]) -> list[CompatibilityDiagnostic]:
        """Its last events; the notices say what had to be done. A search finds its tools among those `deferred`."""
        call = ProviderCall(self.call_id, self.name, self.text)
        restored = restore_tool_call(call, self._identity, read=self._read(), examined=self.examined)
        item = restored.item
        self._end(item)
        if item["type"] == "tool_search_call" and item["execution"] == "server":
            id, index = self._output.place("tso")
            found: ToolSearchOutput = {
                "type": "tool_search_output",
                "id": id,
                "call_id": None,
                "execution": "server",
                "status": "completed",
                "tools": search_tools(item["arguments"], deferred),
            }
            _announce(self._output, index, found)
            self._output.done(index, found)
        return [replace(said, path=f"output.{self.item_id}") for said in restored.diagnostics]

    def close_cut(self) -> list[CompatibilityDiagnostic]:
        if self._unshown:
            self._open(self._shape("custom_tool_call", "", "in_progress"))
            self._streamed.append(self._unshown)
            self._output.say(self._event, item_id=self.item_id, output_index=self.output_index, delta=self._unshown)
        if self._reader is not None and self.visible:
            # No `done`: clients run free text as soon as they see one.
            self._output.put(self.output_index, self._shape("custom_tool_call", "".join(self._streamed), "incomplete"))
        else:
            self._end(self._shape("function_call", self.text, "incomplete"))
        words = f"the call to `{self.name}` was cut off before it was whole"
        return [notice("bridge.tool.call_incomplete", "output", words)]

    def _read(self) -> CustomInput | None:
        return read_custom_input(self.text) if self._reader is not None else None

    def _open(self, item: CallItem) -> None:
        self.item_id, self.output_index = self._output.place(CALL_PREFIXES[item["type"]])
        item["id"] = self.item_id
        _announce(self._output, self.output_index, item)

    def _end(self, item: CallItem) -> None:
        if not self.visible:
            self._open(item)
        item["id"] = self.item_id
        _close(self._output, self.output_index, item, "".join(self._streamed))

    def _shape(self, kind: _TextCall, text: str, status: Status) -> CallItem:
        call = ProviderCall(self.call_id, self.name, "")
        return shape_call(kind, text, call, self._identity, item_id=self.item_id, status=status)


def tell_whole(output: Output, item: Unspoken) -> None:
    """An item that is over and has its id, from its first event to its last."""
    _, index = output.place("", item["id"])
    _announce(output, index, item)
    _close(output, index, item, "")


def _announce(output: Output, index: int, item: Unspoken) -> None:
    """An item when it is first told: same type, nothing in it yet."""
    begun: Any = {**item, "status": "in_progress"}
    if item["type"] in _TEXTS:
        begun[_TEXTS[item["type"]][0]] = ""
    elif item["type"] == "shell_call":
        begun["action"] = {**item["action"], "commands": []}
    elif item["type"] == "tool_search_output":
        begun["tools"] = []
    output.added(index, begun)


def _close(output: Output, index: int, item: Unspoken, streamed: str) -> None:
    """The last events of a call: what nobody has seen of its text, or its commands, and the item itself."""
    told: Any = item
    if item["type"] in _TEXTS:
        field, event = _TEXTS[item["type"]]
        at: ItemPlace = {"item_id": item["id"], "output_index": index}
        if told[field].startswith(streamed) and told[field] != streamed:
            output.say(f"{event}.delta", **at, delta=told[field][len(streamed) :])
        output.say(f"{event}.done", **at, **{field: told[field]})
    elif item["type"] == "shell_call":
        for number, command in enumerate(item["action"]["commands"]):
            place: CommandPlace = {"output_index": index, "command_index": number}
            output.say("response.shell_call_command.added", **place, command="")
            output.say("response.shell_call_command.delta", **place, delta=command)
            output.say("response.shell_call_command.done", **place, command=command)
    output.done(index, item)
