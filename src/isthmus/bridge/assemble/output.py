"""What a response tells: its items, each with an index and an id, its events, numbered without a gap, and itself.

An `Output` lives as long as the response, across all attempts to answer; nothing that was told is changed afterwards.
The Response object around it has every field that the client may count on:

| field | source |
|---|---|
| `id`, `created_at` | given when the turn starts |
| `completed_at` | given when it ends; `null` unless completed |
| `status`, `error`, `incomplete_details` | the finish reason (`finish.py`), or the failure |
| `model` | the resolved model name |
| `output`, `output_text` | the assembler's items; the text of its messages |
| `usage` | the provider's figures, summed over attempts |
| all others | the request, with the values that took effect |

Required-nullable fields are always there (`null` if nothing); optional ones are left out, never `null`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from isthmus.bridge.deltas import Usage
from isthmus.bridge.diagnostics import CompatibilityDiagnostic
from isthmus.bridge.finish import Outcome
from isthmus.bridge.types.plan import Plan
from isthmus.protocol.events import Event, SnapshotType
from isthmus.protocol.items import CompactionItem, OutputItem
from isthmus.protocol.json import JsonObject
from isthmus.protocol.response import Extension, FinishedResponse, Response, ResponseStatus, ResponseUsage

# None of them says cancelled: a stream that is cancelled ends as failed.
_ENDS: Final[dict[ResponseStatus, SnapshotType]] = {
    "completed": "response.completed",
    "incomplete": "response.incomplete",
}


def end_type(status: ResponseStatus) -> SnapshotType:
    """The terminal event of a response with this status."""
    return _ENDS.get(status, "response.failed")


class Output:
    __slots__ = ("_ids", "_items", "events", "mark", "sequence", "specified", "suffix")

    def __init__(self, response_id: str, *, specified: bool = False) -> None:
        self.specified = specified
        """Whether raw reasoning is spelled as the specification has it."""
        self.events: list[Event] = []
        """Told, but not handed out yet."""
        self.sequence = 0
        """The number of the next event."""
        self.suffix = response_id.removeprefix("resp_")
        """What ids of this response have in common: unique without chance."""
        self.mark = self.suffix
        """The same, for the items of one reply: the next one has another, where tools ran in between."""
        self._items: list[OutputItem | None] = []
        self._ids: set[str] = set()

    @property
    def items(self) -> list[OutputItem]:
        """Those that are finished, in their order."""
        return [item for item in self._items if item is not None]

    def say(self, type: str, **fields: Any) -> None:
        event: Any = {"type": type, "sequence_number": self.sequence, **fields}
        self.events.append(event)
        self.sequence += 1

    def take(self) -> list[Event]:
        events, self.events = self.events, []
        return events

    def place(self, prefix: str, wanted: str = "") -> tuple[str, int]:
        """A new item's id and index; the id is `wanted` unless another item has it."""
        index = len(self._items)
        self._items.append(None)
        id = wanted if wanted and wanted not in self._ids else f"{prefix}_{self.mark}_{index}"
        self._ids.add(id)
        return id, index

    def put(self, index: int, item: OutputItem) -> None:
        self._items[index] = item

    def tell(self, type: SnapshotType, response: Response) -> None:
        self.say(type, response=response)

    def end(self, status: ResponseStatus, response: Response) -> None:
        self.tell(end_type(status), response)

    def added(self, index: int, item: OutputItem) -> None:
        self.say("response.output_item.added", output_index=index, item=item)

    def done(self, index: int, item: OutputItem) -> None:
        self._items[index] = item
        self.say("response.output_item.done", output_index=index, item=item)

    def unsay(self, sequence: int) -> None:
        """What was told from this number on is not: the items keep their place in the response."""
        del self.events[len(self.events) - (self.sequence - sequence) :]
        self.sequence = sequence


def tell_compaction(output: Output, sealed: str, wanted: str = "") -> CompactionItem:
    """The item that stands for a conversation; its summary is nobody's to read while it is written."""
    id, index = output.place("cmp", wanted)
    item: CompactionItem = {"type": "compaction", "id": id, "encrypted_content": sealed, "status": "completed"}
    output.added(index, {**item, "encrypted_content": "", "status": "in_progress"})
    output.say("response.compaction.compacting", item_id=id, output_index=index)
    output.done(index, item)
    return item


class Unheard(Output):
    """Of a reply that nobody is told: it has its items, and no events."""

    __slots__ = ()

    def __init__(self, response_id: str) -> None:
        super().__init__(response_id)
        self.events: Any = deque(maxlen=0)

    def say(self, type: str, **fields: Any) -> None:
        pass


class Frame(msgspec.Struct, frozen=True):
    plan: Plan
    response_id: str
    created_at: int

    def response(
        self,
        status: ResponseStatus,
        output: Sequence[OutputItem] = (),
        usage: Usage | None = None,
        completed_at: int | None = None,
        outcome: Outcome | None = None,
        tool_usage: JsonObject | None = None,
    ) -> Response:
        reason = outcome.incomplete_reason if outcome is not None else None
        failed = outcome if status == "failed" else None
        response: Any = {
            "id": self.response_id,
            "object": "response",
            "created_at": self.created_at,
            "completed_at": completed_at,
            "status": status,
            "error": {"code": failed.error_code, "message": failed.error_message} if failed is not None else None,
            "incomplete_details": {"reason": reason} if reason is not None else None,
            "model": self.plan.target.model,
            "output": list(output),
            "usage": usage_object(usage) if usage is not None else None,
            **self.plan.echo,
        }
        if tool_usage:
            response["tool_usage"] = tool_usage
        finished: Response = response
        return finished

    def finished(
        self, response: Response, notices: Sequence[CompatibilityDiagnostic], stop: str | None = None
    ) -> FinishedResponse:
        """The response once it has ended: what it came to, what was changed on the way, and the stop sequence that
        ended it, by what the provider told of that."""
        told = extension_of(self.plan, notices)
        met = self.plan.met_stop(stop)
        if met is not None:
            told["stop_sequence"] = met
        return {**response, "output_text": output_text(response["output"]), "isthmus": told}


def extension_of(plan: Plan, notices: Sequence[CompatibilityDiagnostic] = ()) -> Extension:
    """What we say of a response: who answers, and what was changed on the way."""
    diagnostics = [diagnostic.to_json() for diagnostic in (*plan.diagnostics, *notices)]
    told: Extension = {"provider": plan.target.provider, "model": plan.target.model, "diagnostics": diagnostics}
    if plan.target.alias is not None:
        told["alias"] = plan.target.alias
    chosen = plan.target.choice
    if chosen is not None:
        told["choice"] = {"name": chosen.name, "by": chosen.by, "reason": chosen.reason}
    return told


def usage_object(usage: Usage) -> ResponseUsage:
    shape: ResponseUsage = {
        "input_tokens": usage.input_tokens,
        "input_tokens_details": {"cached_tokens": usage.cached_tokens, "cache_write_tokens": usage.cache_write_tokens},
        "output_tokens": usage.output_tokens,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
        "total_tokens": usage.total_tokens,
    }
    if usage.estimated:
        shape["estimated"] = True
    return shape


def output_text(output: Sequence[OutputItem]) -> str:
    """All answer text, as the SDKs compute it."""
    return "".join(
        part["text"]
        for item in output
        if item["type"] == "message"
        for part in item["content"]
        if part["type"] == "output_text"
    )
