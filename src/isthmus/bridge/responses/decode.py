"""Native Responses events and objects → the same deltas that every dialect gives.

Providers differ in what they stream: some send only `output_item.done`, some only the final object, some
both. Each item is told once, by whichever comes first; what its deltas left out is made up from its end.
Custom input arrives as plain text and is wrapped the way the tool's reader expects it.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from isthmus.bridge.capabilities import ReplyRules
from isthmus.bridge.chat.failures import read_error
from isthmus.bridge.chat.usage import UsageReader
from isthmus.bridge.deltas import (
    Annotation,
    CallArguments,
    CallOpened,
    Delta,
    Failed,
    Finished,
    HostedCall,
    Reasoning,
    Refusal,
    Text,
    Used,
    VendorExtra,
)
from isthmus.protocol.json import JsonObject

_decode_json: Final = msgspec.json.Decoder().decode
_encode_json: Final = msgspec.json.Encoder().encode

_SPOKEN: Final[dict[str, type[Text | Refusal]]] = {
    "response.output_text.delta": Text,
    "response.refusal.delta": Refusal,
}
_THOUGHT: Final = {
    "response.reasoning_text.delta": "text",
    "response.reasoning.delta": "text",
    "response.reasoning_summary_text.delta": "summary",
}
_CALL_TEXT: Final = {"function_call": "arguments", "custom_tool_call": "input"}
_TERMINAL: Final = ("response.completed", "response.incomplete", "response.failed", "response.cancelled")


class _Item:
    """What has been told of one output item."""

    __slots__ = ("closed", "custom", "said", "slot", "thought")

    def __init__(self) -> None:
        self.slot = -1
        self.custom = False
        self.said: list[str] = []
        self.thought = False
        self.closed = False


class ResponsesDecoder:
    """Decodes one upstream answer: either events one by one and `end`, or `reply` once."""

    __slots__ = ("_items", "_slots", "_usage", "done")

    def __init__(self, rules: ReplyRules) -> None:
        self._usage = UsageReader(_usage_rules(rules))
        self._items: dict[int, _Item] = {}
        self._slots = 0
        self.done = False

    def chunk(self, data: bytes) -> list[Delta]:
        """The deltas of one SSE data line."""
        try:
            event = _decode_json(data)
        except msgspec.DecodeError:
            if data.strip() == b"[DONE]":
                self.done = True
                return []
            return [Failed(f"the upstream sent an event that is not JSON: {data[:120]!r}")]
        if not isinstance(event, dict):
            return [Failed(f"the upstream sent an event that is not an object: {data[:120]!r}")]
        out: list[Delta] = []
        kind = event.get("type")
        if kind in _SPOKEN:
            self._speak(event, _SPOKEN[kind], out)
        elif kind in _THOUGHT:
            self._think(event, _THOUGHT[kind], out)
        elif kind in ("response.function_call_arguments.delta", "response.custom_tool_call_input.delta"):
            self._argue(event, out)
        elif isinstance(kind, str):
            self._other(kind, event, out)
        return out

    def reply(self, data: bytes | JsonObject) -> list[Delta]:
        """The deltas of one whole Response object."""
        try:
            response = data if isinstance(data, dict) else _decode_json(data)
        except msgspec.DecodeError:
            return [Failed("the upstream's reply is not JSON")]
        out: list[Delta] = []
        if not isinstance(response, dict) or not isinstance(response.get("output"), list):
            error = response.get("error") if isinstance(response, dict) else None
            return [read_error(error) if error is not None else Failed("the upstream's reply has no output")]
        self._finish(response, out)
        return out

    def end(self) -> list[Delta]:
        return []

    def _item(self, index: Any) -> _Item:
        key = index if isinstance(index, int) else -1
        return self._items.setdefault(key, _Item())

    def _speak(self, event: JsonObject, kind: type[Text | Refusal], out: list[Delta]) -> None:
        text = event.get("delta")
        if isinstance(text, str) and text:
            self._item(event.get("output_index")).said.append(text)
            out.append(kind(text))

    def _think(self, event: JsonObject, kind: Any, out: list[Delta]) -> None:
        text = event.get("delta")
        if isinstance(text, str) and text:
            self._item(event.get("output_index")).thought = True
            out.append(Reasoning(text, kind))

    def _argue(self, event: JsonObject, out: list[Delta]) -> None:
        item = self._item(event.get("output_index"))
        text = event.get("delta")
        if item.slot >= 0 and isinstance(text, str) and text:
            item.said.append(text)
            out.append(CallArguments(item.slot, _inside_json(text) if item.custom else text))

    def _other(self, kind: str, event: JsonObject, out: list[Delta]) -> None:
        if kind == "response.output_item.added":
            self._open(event.get("output_index"), event.get("item"), out)
        elif kind == "response.output_item.done":
            self._close(event.get("output_index"), event.get("item"), out)
        elif kind == "response.output_text.annotation.added":
            if isinstance(event.get("annotation"), dict):
                out.append(Annotation(event["annotation"]))
        elif kind in _TERMINAL:
            response = event.get("response")
            self._finish(response if isinstance(response, dict) else {}, out, kind.removeprefix("response."))
            self.done = True
        elif kind == "error":
            out.append(read_error(event.get("error") if isinstance(event.get("error"), dict) else event))
            self.done = True

    def _open(self, index: Any, item: Any, out: list[Delta]) -> None:
        if not isinstance(item, dict) or item.get("type") not in _CALL_TEXT:
            return
        told = self._item(index)
        if told.slot >= 0:
            return
        told.slot, self._slots = self._slots, self._slots + 1
        told.custom = item["type"] == "custom_tool_call"
        call_id = item.get("call_id") or item.get("id")
        out.append(CallOpened(told.slot, call_id if isinstance(call_id, str) else None, str(item.get("name") or "")))
        if told.custom:
            out.append(CallArguments(told.slot, '{"input":"'))

    def _close(self, index: Any, item: Any, out: list[Delta]) -> None:
        """The whole item: whatever its deltas did not say is said now."""
        told = self._item(index)
        if told.closed or not isinstance(item, dict):
            return
        told.closed = True
        match item.get("type"):
            case "function_call" | "custom_tool_call":
                self._close_call(index, told, item, out)
            case "message":
                self._close_message(told, item, out)
            case "reasoning":
                self._close_reasoning(told, item, out)
            case str() as kind if kind.endswith("_call") or kind == "mcp_list_tools":
                out.append(HostedCall({name: value for name, value in item.items() if name not in ("id", "status")}))

    def _close_call(self, index: Any, told: _Item, item: JsonObject, out: list[Delta]) -> None:
        self._open(index, item, out)
        whole = item.get(_CALL_TEXT[item["type"]])
        said = "".join(told.said)
        if isinstance(whole, str) and whole.startswith(said) and len(whole) > len(said):
            rest = whole[len(said) :]
            out.append(CallArguments(told.slot, _inside_json(rest) if told.custom else rest))
        if told.custom and item.get("status") != "incomplete":
            out.append(CallArguments(told.slot, '"}'))

    def _close_message(self, told: _Item, item: JsonObject, out: list[Delta]) -> None:
        if told.said:
            return
        for part in item.get("content") or ():
            if not isinstance(part, dict):
                continue
            if part.get("type") == "refusal" and part.get("refusal"):
                out.append(Refusal(str(part["refusal"])))
            elif isinstance(part.get("text"), str) and part["text"]:
                out.append(Text(part["text"]))
                out += [Annotation(each) for each in part.get("annotations") or () if isinstance(each, dict)]

    def _close_reasoning(self, told: _Item, item: JsonObject, out: list[Delta]) -> None:
        if not told.thought:
            out += [Reasoning(text, "summary") for text in _texts(item.get("summary"))]
            out += [Reasoning(text) for text in _texts(item.get("content"))]
        if item.get("encrypted_content"):
            kept = {name: item[name] for name in ("type", "id", "summary", "encrypted_content") if name in item}
            out.append(VendorExtra("encrypted_content", [{"summary": [], **kept}]))

    def _finish(self, response: JsonObject, out: list[Delta], status: str | None = None) -> None:
        for index, item in enumerate(response.get("output") or ()):
            self._close(index, item, out)
        usage = response.get("usage")
        counted = self._usage.read(usage) if isinstance(usage, dict) else None
        if counted is not None:
            out.append(Used(counted))
        match response.get("status") or status:
            case "completed":
                out.append(Finished("tool_calls" if self._slots else "stop"))
            case "incomplete":
                details = response.get("incomplete_details")
                reason = details.get("reason") if isinstance(details, dict) else None
                out.append(Finished("content_filter" if reason == "content_filter" else "length"))
            case _:
                error = response.get("error")
                out.append(read_error(error) if error else Failed("the upstream's response failed"))


def _texts(parts: Any) -> list[str]:
    given = [part.get("text") for part in parts or () if isinstance(part, dict)]
    return [text for text in given if isinstance(text, str) and text]


def _inside_json(text: str) -> str:
    """Text as it stands between the quotes of a JSON string."""
    return _encode_json(text).decode()[1:-1]


def _usage_rules(rules: ReplyRules) -> ReplyRules:
    return msgspec.structs.replace(
        rules,
        cached_tokens=["input_tokens_details.cached_tokens", *rules.cached_tokens],
        reasoning_tokens=["output_tokens_details.reasoning_tokens", *rules.reasoning_tokens],
    )
