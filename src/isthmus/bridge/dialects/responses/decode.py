"""Native Responses events and objects → the same deltas that every dialect gives.

Providers differ in what they stream: some send only `output_item.done`, some only the final object, some
both, and some leave out indexes or ids. Each item is told once, by whichever comes first; what its deltas
left out is made up from its end. Custom input arrives as plain text and is wrapped the way the tool's
reader expects it.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from isthmus.bridge.capabilities import ReplyRules
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
from isthmus.bridge.dialects.chat.failures import excerpt, read_error
from isthmus.bridge.dialects.chat.logprobs import read_logprobs
from isthmus.bridge.dialects.chat.usage import UsageReader
from isthmus.bridge.dialects.responses.told import Told, annotations_of, encode_inside, text_of, texts_of
from isthmus.protocol.json import JsonObject
from isthmus.scrub import Scrubber

_decode_json: Final = msgspec.json.Decoder().decode

_CALL_TEXT: Final = {"function_call": "arguments", "custom_tool_call": "input"}
_TERMINAL: Final = frozenset(
    {"response.completed", "response.incomplete", "response.failed", "response.cancelled", "response.done"}
)
_HOSTED: Final = frozenset({"mcp_list_tools", "mcp_approval_request"})
_NO_SECRETS: Final = Scrubber()


class ResponsesDecoder:
    """Decodes one upstream answer: either events one by one and `end`, or `reply` once."""

    __slots__ = ("_by_id", "_by_index", "_items", "_scrubber", "_slots", "_usage", "done")

    def __init__(self, rules: ReplyRules, scrubber: Scrubber = _NO_SECRETS) -> None:
        """`scrubber` is for the words of errors and of MCP servers; what the model says is not looked at."""
        self._scrubber = scrubber
        self._usage = UsageReader(_usage_rules(rules))
        self._items: list[Told] = []
        self._by_index: dict[int, Told] = {}
        self._by_id: dict[str, Told] = {}
        self._slots = 0
        self.done = False
        """Whether nothing more is to come."""

    def chunk(self, data: bytes) -> list[Delta]:
        """The deltas of one SSE data line; none behind the end."""
        if self.done:
            return []
        try:
            event = _decode_json(data)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            if data.strip() == b"[DONE]":
                self.done = True
                return []
            return [Failed(f"the upstream sent an event that is not JSON: {excerpt(data, self._scrubber.text)}")]
        if not isinstance(event, dict):
            return [Failed(f"the upstream sent an event that is not an object: {excerpt(data, self._scrubber.text)}")]
        out: list[Delta] = []
        kind = event.get("type")
        tell = _EVENTS.get(kind) if isinstance(kind, str) else None
        if tell is not None:
            tell(self, event, out)
        elif isinstance(kind, str) and kind in _TERMINAL:
            response = event.get("response")
            self._finish(response if isinstance(response, dict) else {}, kind.removeprefix("response."), out)
            self.done = True
        elif kind is None and event.get("error") is not None:
            self._fail(event, out)
        return out

    def reply(self, data: bytes | JsonObject) -> list[Delta]:
        """The deltas of one whole Response object."""
        try:
            response = data if isinstance(data, dict) else _decode_json(data)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return [Failed("the upstream's reply is not JSON")]
        out: list[Delta] = []
        if not isinstance(response, dict) or not isinstance(response.get("output"), list):
            error = response.get("error") if isinstance(response, dict) else None
            if error is None:
                return [Failed("the upstream's reply has no output")]
            return [read_error(error, self._scrubber.text)]
        self._finish(response, "completed", out)
        return out

    def end(self) -> list[Delta]:
        return []

    # ── events ─────────────────────────────────────────────────────────────────────────────────────

    def _speak(self, event: JsonObject, out: list[Delta]) -> None:
        text = event.get("delta")
        if isinstance(text, str) and text:
            self._find(event, "message").say("text", text)
            logprobs = event.get("logprobs")
            out.append(Text(text, read_logprobs(logprobs)) if logprobs else Text(text))

    def _refuse(self, event: JsonObject, out: list[Delta]) -> None:
        text = event.get("delta")
        if isinstance(text, str) and text:
            self._find(event, "message").say("refusal", text)
            out.append(Refusal(text))

    def _think(self, event: JsonObject, out: list[Delta]) -> None:
        text = event.get("delta")
        if isinstance(text, str) and text:
            self._find(event, "reasoning").say("thought", text)
            out.append(Reasoning(text))

    def _summarise(self, event: JsonObject, out: list[Delta]) -> None:
        text = event.get("delta")
        if isinstance(text, str) and text:
            told = self._find(event, "reasoning")
            part = event.get("summary_index")
            if told.said("summary") and part != told.part:
                text = f"\n\n{text}"
            told.part = part
            told.say("summary", text)
            out.append(Reasoning(text, "summary"))

    def _argue(self, event: JsonObject, out: list[Delta]) -> None:
        text = event.get("delta")
        told = self._find(event, "")
        if told.slot >= 0 and not told.closed and isinstance(text, str) and text:
            told.say("call", text)
            out.append(CallArguments(told.slot, encode_inside(text) if told.custom else text))

    def _annotate(self, event: JsonObject, out: list[Delta]) -> None:
        found = annotations_of([event.get("annotation")])
        self._find(event, "message").annotated += len(found)
        out.extend(map(Annotation, found))

    def _added(self, event: JsonObject, out: list[Delta]) -> None:
        item = event.get("item")
        if isinstance(item, dict):
            self._open(self._place(event, item), item, out)

    def _done(self, event: JsonObject, out: list[Delta]) -> None:
        item = event.get("item")
        if isinstance(item, dict):
            self._close(self._place(event, item), item, out)

    def _fail(self, event: JsonObject, out: list[Delta]) -> None:
        error = event["error"] if isinstance(event.get("error"), dict | str) else event
        out.append(read_error(error, self._scrubber.text))
        self.done = True

    # ── items ──────────────────────────────────────────────────────────────────────────────────────

    def _find(self, event: JsonObject, kind: str) -> Told:
        """The item that an event is about: by its index, its id, or else the newest one of its kind."""
        index = event.get("output_index")
        told = self._by_index.get(index) if type(index) is int else None
        if told is None:
            id = event.get("item_id")
            told = self._by_id.get(id) if isinstance(id, str) else None
            if told is None and type(index) is not int and self._items and self._items[-1].kind in (kind, ""):
                told = self._items[-1]
            if told is None:
                told = self._new(kind, index, id)
        return told

    def _place(self, event: JsonObject, item: JsonObject) -> Told:
        """The item that is opened or closed: known by its index or id, or new."""
        kind = text_of(item.get("type"))
        index, id = event.get("output_index"), item.get("id")
        told = self._by_index.get(index) if type(index) is int else None
        if told is None and isinstance(id, str):
            told = self._by_id.get(id)
        if told is None:
            return self._new(kind, index, id)
        told.kind = told.kind or kind
        return told

    def _new(self, kind: str, index: Any, id: Any) -> Told:
        told = Told(kind)
        self._items.append(told)
        if type(index) is int:
            self._by_index[index] = told
        if isinstance(id, str):
            self._by_id[id] = told
        return told

    def _open(self, told: Told, item: JsonObject, out: list[Delta]) -> None:
        kind = text_of(item.get("type"))
        if kind not in _CALL_TEXT or told.slot >= 0:
            return
        told.slot, self._slots = self._slots, self._slots + 1
        told.custom = kind == "custom_tool_call"
        call_id = text_of(item.get("call_id")) or text_of(item.get("id"))
        out.append(CallOpened(told.slot, call_id or None, text_of(item.get("name"))))
        if told.custom:
            out.append(CallArguments(told.slot, '{"input":"'))

    def _close(self, told: Told, item: JsonObject, out: list[Delta]) -> None:
        """The whole item: whatever its deltas did not say is said now."""
        if told.closed:
            return
        told.closed = True
        match item.get("type"):
            case "function_call" | "custom_tool_call":
                self._close_call(told, item, out)
            case "message":
                _close_message(told, item, out)
            case "reasoning":
                _close_reasoning(told, item, out)
            case str() as kind if kind.endswith("_call") or kind in _HOSTED:
                hosted = {name: value for name, value in item.items() if name not in ("id", "status")}
                out.append(HostedCall(self._scrubber.json(hosted) if kind.startswith("mcp_") else hosted))

    def _close_call(self, told: Told, item: JsonObject, out: list[Delta]) -> None:
        self._open(told, item, out)
        whole = text_of(item.get(_CALL_TEXT[item["type"]]))
        said = told.said("call")
        ended = item.get("status") != "incomplete"
        if whole and not whole.startswith(said):  # told anew: the end is right
            text = f'{{"input":"{encode_inside(whole)}{_END if ended else ""}' if told.custom else whole
            out.append(CallArguments(told.slot, text, replace=True))
            return
        rest = whole[len(said) :]
        if rest:
            out.append(CallArguments(told.slot, encode_inside(rest) if told.custom else rest))
        if told.custom and ended:
            out.append(CallArguments(told.slot, _END))

    def _finish(self, response: JsonObject, status: str, out: list[Delta]) -> None:
        """The final object: items that were not told yet, the usage, and how it ended."""
        output = response.get("output")
        open_ones = list(self._items)
        for index, item in enumerate(output if isinstance(output, list) else ()):
            if isinstance(item, dict):
                self._close(self._same(index, item, open_ones), item, out)
        usage = response.get("usage")
        counted = self._usage.read(usage) if isinstance(usage, dict) else None
        if counted is not None:
            out.append(Used(counted))
        error = response.get("error")
        match response.get("status") or ("completed" if status == "done" else status):
            case "completed" if not error:
                out.append(Finished("tool_calls" if self._slots else "stop"))
            case "incomplete":
                details = response.get("incomplete_details")
                reason = details.get("reason") if isinstance(details, dict) else None
                out.append(Finished("content_filter" if reason == "content_filter" else "length"))
            case _:
                out.append(
                    read_error(error, self._scrubber.text) if error else Failed("the upstream's response failed")
                )

    def _same(self, index: int, item: JsonObject, left: list[Told]) -> Told:
        """The streamed item that an item of the final object is: ids may change on the way, and items go missing."""
        kind, id = text_of(item.get("type")), item.get("id")
        by_id = self._by_id.get(id) if isinstance(id, str) else None
        for told in (by_id, self._by_index.get(index), *left):
            if told is not None and told in left and told.kind == kind:
                left.remove(told)
                return told
        return Told(kind)


_END: Final = '"}'

_EVENTS: Final = {
    "response.output_text.delta": ResponsesDecoder._speak,
    "response.refusal.delta": ResponsesDecoder._refuse,
    "response.reasoning_text.delta": ResponsesDecoder._think,
    "response.reasoning.delta": ResponsesDecoder._think,
    "response.reasoning_summary_text.delta": ResponsesDecoder._summarise,
    "response.function_call_arguments.delta": ResponsesDecoder._argue,
    "response.custom_tool_call_input.delta": ResponsesDecoder._argue,
    "response.output_text.annotation.added": ResponsesDecoder._annotate,
    "response.output_item.added": ResponsesDecoder._added,
    "response.output_item.done": ResponsesDecoder._done,
    "error": ResponsesDecoder._fail,
}


def _close_message(told: Told, item: JsonObject, out: list[Delta]) -> None:
    content = item.get("content")
    parts = [part for part in content if isinstance(part, dict)] if isinstance(content, list) else []
    spoken = [part for part in parts if part.get("type") != "refusal"]
    for part, rest in told.missing("text", spoken, "text"):
        logprobs = part.get("logprobs")
        out.append(Text(rest, read_logprobs(logprobs) if logprobs and rest == part["text"] else None))
    found = annotations_of([given for part in spoken for given in _list(part.get("annotations"))])
    out.extend(map(Annotation, found[told.annotated :]))
    refusals = [part for part in parts if part.get("type") == "refusal"]
    out.extend(Refusal(rest) for _, rest in told.missing("refusal", refusals, "refusal"))


def _close_reasoning(told: Told, item: JsonObject, out: list[Delta]) -> None:
    summary = {"text": "\n\n".join(texts_of(item.get("summary")))}
    out.extend(Reasoning(rest, "summary") for _, rest in told.missing("summary", [summary], "text"))
    content = [{"text": text} for text in texts_of(item.get("content"))]
    out.extend(Reasoning(rest) for _, rest in told.missing("thought", content, "text"))
    if item.get("encrypted_content"):
        kept = {name: item[name] for name in ("type", "id", "summary", "encrypted_content") if name in item}
        out.append(VendorExtra("encrypted_content", [{"summary": [], **kept}]))


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _usage_rules(rules: ReplyRules) -> ReplyRules:
    return msgspec.structs.replace(
        rules,
        cached_tokens=["input_tokens_details.cached_tokens", *rules.cached_tokens],
        reasoning_tokens=["output_tokens_details.reasoning_tokens", *rules.reasoning_tokens],
    )
