"""All calls of one reply, each restored to the client's own type from its first event on.

| the client's tool | opens | streams |
|---|---|---|
| function (or unknown) | at once, `function_call` | argument text as it comes |
| custom | when its argument text is surely `{"input": "…`, `custom_tool_call` | the decoded input as it comes |
| shell, local_shell, apply_patch, tool_search | when its arguments are whole | nothing, or its commands |

The last row waits because its type is only certain when the arguments can be read: an item never changes its type
between `added` and `done`. Which tool a call means is found out once, when it opens.

A call is closed when something else opens, if its arguments are whole by then: vendors interleave the fragments of
parallel calls, so one that is not whole stays open. A custom call whose tool has a grammar is examined first, and not
here: `Paused` rises, `pending` says what is to be examined, and whoever closed tries again after `take_verdict`.

A call that was cut off is never closed as complete. By a length, a filter or a failure: it is `incomplete` in the
response. By nothing that the provider admits (a regular finish, arguments that break off): a `function_call` with the
arguments as they are, unless a part of them was shown as custom input already; then it is `incomplete` as well. A
custom call that is `incomplete` gets no `output_item.done`, because clients run free text as soon as they see one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final, Literal

from msgspec.structs import replace

from isthmus.bridge.assemble.output import Output
from isthmus.bridge.deltas import CallArguments, CallOpened, Failed
from isthmus.bridge.diagnostics import CompatibilityDiagnostic, notice
from isthmus.bridge.json_text import is_json
from isthmus.bridge.tools.custom_input import CustomInput, CustomInputReader
from isthmus.bridge.tools.examine import Examined, ExamineInput, examination_of
from isthmus.bridge.tools.restore import find_identity, restore_call, shape_call
from isthmus.bridge.tools.search import search_tools
from isthmus.bridge.types.tools import ProviderCall, ToolDeclarationPlan, ToolIdentity, ToolPlan
from isthmus.protocol.events import CommandPlace, ItemPlace
from isthmus.protocol.items import CallItem, CustomToolCall, FunctionCall, Status, ToolSearchOutput
from isthmus.protocol.json import JsonObject

_PREFIXES: Final = {
    "function_call": "fc",
    "custom_tool_call": "ctc",
    "shell_call": "sh",
    "local_shell_call": "lsh",
    "apply_patch_call": "apc",
    "tool_search_call": "tsc",
}


_DeltaType = Literal["response.function_call_arguments.delta", "response.custom_tool_call_input.delta"]
_TextCall = Literal["function_call", "custom_tool_call"]


class Paused(Exception):
    """Nothing goes on before the pending examination is answered."""


class Calls:
    """Which tool each call means, whether it may pass, when it is closed."""

    __slots__ = (
        "_any",
        "_calls",
        "_changed",
        "_examining",
        "_notices",
        "_open",
        "_output",
        "_taken",
        "_tools",
        "_waived",
        "broken",
        "pending",
    )

    def __init__(
        self, tools: ToolPlan, output: Output, taken: set[str], notices: list[CompatibilityDiagnostic]
    ) -> None:
        """`taken`: call ids that the conversation uses; `notices`: where what has to be said is put."""
        self._tools = tools
        self._output = output
        self._taken = taken
        self._notices = notices
        self._any = False
        self._calls: dict[int, _Call | None] = {}
        self._open: dict[int, _Call] = {}
        self._changed: dict[int, _Call] = {}
        """Those that got more text since it was last asked whether they are whole."""
        self._examining: _Call | None = None
        self._waived = False
        self.pending: ExamineInput | None = None
        self.broken = False
        """Whether one broke off although the provider said that it finished."""

    def __bool__(self) -> bool:
        """Whether there is a call that the client sees."""
        return self._any

    @property
    def only_search(self) -> bool:
        """Whether every call is a search that is carried out here: then the model is asked again, not the client."""
        return self._any and all(call is None or call.searches for call in self._calls.values())

    def open(self, delta: CallOpened, before: Callable[[], None]) -> Failed | None:
        """Begin a call, with this done `before`, or suppress it; one that means no tool at all fails the turn."""
        identity = self._identify(delta)
        name = identity.provider_name if identity is not None else delta.name
        self._calls[delta.slot] = None
        if not name:
            return Failed("the model called a tool without naming it")
        if self._tools.allowed is not None and name not in self._tools.allowed:
            words = f"the model called `{name}`, which this request does not allow"
            self._notices.append(notice("bridge.tool.call_suppressed", "output", words, name=name))
            return None
        before()
        call = _Call(self._call_id(delta.id), name, identity, self._output)
        self._calls[delta.slot] = self._open[delta.slot] = call
        self._any = True
        return None

    def append(self, delta: CallArguments) -> None:
        call = self._open.get(delta.slot)
        if call is not None:
            self._changed[delta.slot] = call
            call.append(delta)
        elif (closed := self._calls.get(delta.slot)) is not None and not closed.says(delta):
            words = f"arguments of the call to `{closed.name}` came after it was whole"
            where = f"output.{closed.item_id}"
            self._notices.append(notice("bridge.tool.arguments_ignored", where, words, call_id=closed.call_id))

    def call_id(self, slot: int) -> str | None:
        call = self._calls.get(slot)
        return call.call_id if call is not None else None

    def close_whole(self) -> None:
        """Something else opens: what is whole is done."""
        if not self._changed:
            return
        whole = {slot: call for slot, call in self._changed.items() if call.whole}
        self._examine(whole.values())
        self._changed = {}
        for slot, call in whole.items():
            self._close(slot, call, cut=False)

    # ── examinations ───────────────────────────────────────────────────────────────────────────────

    def examine_all(self, *, stopped: bool, spoken_since: bool) -> None:
        """The reply is about to be over: whatever will be closed as whole is examined first."""
        if not self._open:
            return
        self._examine([call for call in self._open.values() if not self._cut(call, stopped, spoken_since)])

    def take_verdict(self, verdict: Examined) -> None:
        if self._examining is None:
            raise RuntimeError("no examination is pending")
        self._examining.examined = verdict
        self._examining = self.pending = None

    def waive(self) -> None:
        """Nobody can be waited for any more: what was not examined yet will be passed on as it is."""
        self._examining = self.pending = None
        self._waived = True

    def _examine(self, calls: Iterable[_Call]) -> None:
        for call in calls:
            job = call.examination
            if job is not None and self._waived:
                call.examined = Examined(job.text, "", "unchecked", "the response ended before that")
            elif job is not None:
                self.pending, self._examining = job, call
                raise Paused

    # ── closing ────────────────────────────────────────────────────────────────────────────────────

    def close_all(self, *, stopped: bool, failed: bool, spoken_since: bool) -> None:
        """The reply is over. `stopped`: before its time; then a call that is not whole was cut off."""
        if not self._open:
            return
        self.examine_all(stopped=stopped, spoken_since=spoken_since)
        for slot, call in list(self._open.items()):
            cut = self._cut(call, stopped, spoken_since)
            if cut and (failed or call.searches) and not call.begun:
                del self._open[slot]  # never shown, never whole: nothing a client could use
            else:
                self._close(slot, call, cut=cut)

    def _cut(self, call: _Call, stopped: bool, spoken_since: bool) -> bool:
        """Whether the reply ended in the middle of this call."""
        if not stopped or call.whole:
            return False
        # A call without a word of arguments is whole unless it is the very last thing that was said.
        newest = next((call for call in reversed(self._calls.values()) if call is not None), None)
        return bool(call.text or (call is newest and not spoken_since))

    def _close(self, slot: int, call: _Call, *, cut: bool) -> None:
        del self._open[slot]
        if not cut and call.breaks_off:
            self.broken = cut = True
        self._notices.extend(call.close_cut() if cut else call.close(self._tools.deferred))

    def _identify(self, delta: CallOpened) -> ToolIdentity | None:
        if delta.name:
            return find_identity(delta.name, self._tools.identities)
        only = [declared.identity for declared in self._tools.declarations if declared.identity is not None]
        return only[0] if len(only) == 1 else None

    def _call_id(self, given: str | None) -> str:
        """The vendor's id, unless it is missing or already used in this conversation (`call_0` each turn)."""
        if given and given not in self._taken:
            self._taken.add(given)
            return given
        minted = f"call_{self._output.suffix}_{len(self._taken)}"
        self._taken.add(minted)
        return minted


class _Call:
    """One call, from its first fragment to its last event."""

    __slots__ = (
        "_identity",
        "_output",
        "_pieces",
        "_reader",
        "_streamed",
        "_unshown",
        "call_id",
        "examined",
        "item_id",
        "name",
        "output_index",
    )

    def __init__(self, call_id: str, name: str, identity: ToolIdentity | None, output: Output) -> None:
        self.call_id = call_id
        self.name = name
        self._identity = identity
        self._output = output
        self._pieces: list[str] = []
        self._streamed: list[str] = []
        self.examined: Examined | None = None
        """The verdict on a custom tool's input, once it is known."""
        self.item_id = ""
        self.output_index = -1
        self._reader: CustomInputReader | None = None
        self._unshown = ""
        """Custom input that is certain, and that nobody has seen."""
        if identity is None or identity.requested_type == "function":
            self._open(self._shape("function_call", "", "in_progress"))
        elif identity.requested_type == "custom":
            self._reader = CustomInputReader(identity.tool)

    @property
    def visible(self) -> bool:
        return self.output_index >= 0

    @property
    def begun(self) -> bool:
        """Whether there is something of it that a client could use."""
        return self.visible or bool(self._unshown)

    @property
    def searches(self) -> bool:
        """Whether it looks for deferred tools."""
        tool = self._identity
        return tool is not None and tool.requested_type == "tool_search" and tool.tool.get("execution") != "client"

    @property
    def text(self) -> str:
        """The argument text so far."""
        if len(self._pieces) > 1:
            self._pieces = ["".join(self._pieces)]
        return self._pieces[0] if self._pieces else ""

    @property
    def whole(self) -> bool:
        """Whether the arguments so far are one complete JSON value (or, for free text, may be)."""
        return is_json(self.text)

    @property
    def breaks_off(self) -> bool:
        """Whether half of a custom input was shown, and the other half never came."""
        found = self._read() if self.visible else None
        return found is not None and found.shape == "cut"

    @property
    def examination(self) -> ExamineInput | None:
        """What has to be examined before this call can be closed as whole; `None`: nothing, or it was."""
        if self._reader is None or self._identity is None or self.examined is not None:
            return None
        found = self._read()
        # What is cut falls back or stays open: there is nothing to mend.
        return None if found is None or found.shape == "cut" else examination_of(self._identity.tool, found)

    def append(self, delta: CallArguments) -> None:
        text = delta.text
        if delta.replace:
            # Told anew: what was streamed stays true as far as the new text agrees with it.
            before = self.text
            self._pieces = [text]
            if not text.startswith(before):
                self._start_over(text)
                return
            text = text[len(before) :]
            if not text:
                return
        else:
            self._pieces.append(text)
        if self._reader is not None:
            ready = self._reader.feed(text)
            if delta.whole:
                # Told when it closes: it may still turn out to be no custom call.
                self._unshown = ready
            elif ready:
                self._tell_input(ready)
        elif self.visible:
            self._tell("response.function_call_arguments.delta", text)

    def says(self, delta: CallArguments) -> bool:
        """Whether more text for a call that is closed says nothing new."""
        return not delta.text.strip() or (delta.replace and delta.text == self.text)

    def close(self, deferred: Sequence[ToolDeclarationPlan]) -> list[CompatibilityDiagnostic]:
        """Its last events; the notices say what had to be done. A search finds its tools among those `deferred`."""
        call = ProviderCall(self.call_id, self.name, self.text)
        restored = restore_call(call, self._identity, item_id=self.item_id, read=self._read(), examined=self.examined)
        item = restored.item
        if not self.visible:
            self._open(announce(item))
        item["id"] = self.item_id
        if item["type"] == "function_call":
            self._rest("response.function_call_arguments.delta", item["arguments"])
        elif item["type"] == "custom_tool_call":
            self._rest("response.custom_tool_call_input.delta", item["input"])
        close_call(self._output, self.output_index, item)
        if item["type"] == "tool_search_call" and item["execution"] == "server":
            _tell_found(self._output, search_tools(item["arguments"], deferred))
        return [replace(said, path=f"output.{self.item_id}") for said in restored.diagnostics]

    def close_cut(self) -> list[CompatibilityDiagnostic]:
        """The reply ended before the call did."""
        if self._unshown:
            self._tell_input(self._unshown)
        if self._reader is not None and self.visible:
            item = self._shape("custom_tool_call", "".join(self._streamed), "incomplete")
            self._output.put(self.output_index, item)
        else:
            if not self.visible:
                self._open(self._shape("function_call", "", "in_progress"))
                self._tell("response.function_call_arguments.delta", self.text)
            close_call(self._output, self.output_index, self._shape("function_call", self.text, "incomplete"))
        words = f"the call to `{self.name}` was cut off before it was whole"
        return [notice("bridge.tool.call_incomplete", "output", words)]

    def _read(self) -> CustomInput | None:
        return self._reader.finish(self.text) if self._reader is not None else None

    def _start_over(self, text: str) -> None:
        if self._reader is None or self._identity is None:
            return
        self._reader = CustomInputReader(self._identity.tool)
        ready = self._reader.feed(text)
        if ready and not self.visible:
            self._tell_input(ready)

    def _tell_input(self, text: str) -> None:
        if not self.visible:
            self._open(self._shape("custom_tool_call", "", "in_progress"))
        self._tell("response.custom_tool_call_input.delta", text)

    def _rest(self, event: _DeltaType, final: str) -> None:
        streamed = "".join(self._streamed)
        if final.startswith(streamed) and len(final) > len(streamed):
            self._tell(event, final[len(streamed) :])

    def _tell(self, event: _DeltaType, text: str) -> None:
        self._streamed.append(text)
        tell_call_text(self._output, event, self.item_id, self.output_index, text)

    def _open(self, item: CallItem) -> None:
        self.item_id, self.output_index = self._output.place(_PREFIXES[item["type"]])
        item["id"] = self.item_id
        self._output.added(self.output_index, item)

    def _shape(self, kind: _TextCall, text: str, status: Status) -> FunctionCall | CustomToolCall:
        call = ProviderCall(self.call_id, self.name, "")
        return shape_call(kind, text, call, self._identity, item_id=self.item_id, status=status)


def _tell_found(output: Output, tools: list[JsonObject]) -> None:
    id, index = output.place("tso")
    found: ToolSearchOutput = {
        "type": "tool_search_output",
        "id": id,
        "call_id": None,
        "execution": "server",
        "tools": tools,
        "status": "completed",
    }
    output.added(index, {**found, "status": "in_progress", "tools": []})
    output.done(index, found)


def tell_call_text(output: Output, event: _DeltaType, item_id: str, index: int, text: str) -> None:
    number = output.sequence
    output.sequence = number + 1
    output.events.append(
        {"type": event, "sequence_number": number, "item_id": item_id, "output_index": index, "delta": text}
    )


def announce(item: CallItem) -> CallItem:
    """How an item looks when it is first announced: same type, nothing in it yet."""
    if item["type"] == "function_call":
        return {**item, "status": "in_progress", "arguments": ""}
    if item["type"] == "custom_tool_call":
        return {**item, "status": "in_progress", "input": ""}
    if item["type"] == "shell_call":
        return {**item, "status": "in_progress", "action": {**item["action"], "commands": []}}
    if item["type"] == "local_shell_call":
        return {**item, "status": "in_progress"}
    if item["type"] == "apply_patch_call":
        return {**item, "status": "in_progress"}
    return {**item, "status": "in_progress"}


def close_call(output: Output, index: int, item: CallItem) -> None:
    """The last events of a call: its text or its commands once more, and the item itself."""
    at: ItemPlace = {"item_id": item["id"], "output_index": index}
    if item["type"] == "function_call":
        next, text = output.number(), item["arguments"]
        output.events.append(
            {"type": "response.function_call_arguments.done", "sequence_number": next, **at, "arguments": text}
        )
    elif item["type"] == "custom_tool_call":
        next, text = output.number(), item["input"]
        output.events.append(
            {"type": "response.custom_tool_call_input.done", "sequence_number": next, **at, "input": text}
        )
    elif item["type"] == "shell_call":
        for number, command in enumerate(item["action"]["commands"]):
            _tell_command(output, index, number, command)
    output.done(index, item)


def _tell_command(output: Output, index: int, number: int, command: str) -> None:
    """A shell call's commands have events of their own."""
    at: CommandPlace = {"output_index": index, "command_index": number}
    next = output.number
    output.events += [
        {"type": "response.shell_call_command.added", "sequence_number": next(), **at, "command": ""},
        {"type": "response.shell_call_command.delta", "sequence_number": next(), **at, "delta": command},
        {"type": "response.shell_call_command.done", "sequence_number": next(), **at, "command": command},
    ]
