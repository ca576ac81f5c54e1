"""Native Responses events and objects → the same deltas that every dialect gives.

Providers differ in what they stream: some send only `output_item.done`, some only the final object, some
both, and some leave out indexes or ids. Each item is told once, by whichever comes first; what its deltas
left out is made up from its end. Items and parts keep their bounds. Custom input arrives as plain text and is
wrapped the way the tool's reader expects it.
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
    HostedOpened,
    HostedProgress,
    ItemBegan,
    ItemEnded,
    Markup,
    PartBegan,
    Reasoning,
    Refusal,
    Text,
    Used,
    VendorExtra,
)
from isthmus.bridge.dialects.chat.failures import excerpt, read_error
from isthmus.bridge.dialects.chat.logprobs import read_logprobs
from isthmus.bridge.dialects.chat.usage import UsageReader
from isthmus.bridge.dialects.responses.told import (
    PartKind,
    Told,
    ToldPart,
    WholePart,
    annotations_of,
    encode_inside,
    read_parts,
    read_phase,
    text_of,
)
from isthmus.protocol.events import HOSTED_STEPS
from isthmus.protocol.json import JsonObject
from isthmus.scrub import Scrubber

_decode_json: Final = msgspec.json.Decoder().decode

_CALL_TEXT: Final = {"function_call": "arguments", "custom_tool_call": "input"}
_TERMINAL: Final = frozenset(
    {"response.completed", "response.incomplete", "response.failed", "response.cancelled", "response.done"}
)
_HOSTED: Final = frozenset(
    {
        "web_search_call",
        "file_search_call",
        "code_interpreter_call",
        "image_generation_call",
        "mcp_call",
        "mcp_list_tools",
        "mcp_approval_request",
    }
)
"""Items that are told from their beginning on. Other calls (`computer_call` …) are passed on when they are whole."""
_NO_FIELDS: Final = frozenset({"type", "sequence_number", "output_index", "item_id"})
_NO_SECRETS: Final = Scrubber()


class ResponsesDecoder:
    """Decodes one upstream answer: either events one by one and `end`, or `reply` once."""

    __slots__ = ("_by_id", "_by_index", "_hosted", "_items", "_scrubber", "_slots", "_speaking", "_usage", "done")

    def __init__(self, rules: ReplyRules, scrubber: Scrubber = _NO_SECRETS) -> None:
        """`scrubber` is for the words of errors and of MCP servers; what the model says is not looked at."""
        self._scrubber = scrubber
        self._usage = UsageReader(_usage_rules(rules))
        self._items: list[Told] = []
        self._by_index: dict[int, Told] = {}
        self._by_id: dict[str, Told] = {}
        self._speaking: Told | None = None
        """The message or reasoning item that the deltas are in."""
        self._slots = 0
        self._hosted = 0
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
        elif isinstance(kind, str) and kind in HOSTED_STEPS:
            self._progress(event, out)
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
            self._part(self._find(event, "message"), "output_text", event.get("content_index"), out).say(text)
            logprobs = event.get("logprobs")
            out.append(Text(text, read_logprobs(logprobs)) if logprobs else Text(text))

    def _refuse(self, event: JsonObject, out: list[Delta]) -> None:
        self._say(event, self._find(event, "message"), "refusal", event.get("content_index"), out)

    def _think(self, event: JsonObject, out: list[Delta]) -> None:
        self._say(event, self._find(event, "reasoning"), "reasoning_text", event.get("content_index"), out)

    def _summarise(self, event: JsonObject, out: list[Delta]) -> None:
        self._say(event, self._find(event, "reasoning"), "summary_text", event.get("summary_index"), out)

    def _say(self, event: JsonObject, told: Told, kind: PartKind, index: Any, out: list[Delta]) -> None:
        text = event.get("delta")
        if isinstance(text, str) and text:
            self._part(told, kind, index, out).say(text)
            out.append(_words(kind, text))

    def _argue(self, event: JsonObject, out: list[Delta]) -> None:
        text = event.get("delta")
        told = self._find(event, "")
        if told.slot >= 0 and not told.closed and isinstance(text, str) and text:
            if told.custom and not told.said:
                out.append(CallArguments(told.slot, _BEGIN))
            told.say(text)
            out.append(CallArguments(told.slot, encode_inside(text) if told.custom else text))

    def _annotate(self, event: JsonObject, out: list[Delta]) -> None:
        found = annotations_of([event.get("annotation")])
        if found:
            part = self._part(self._find(event, "message"), "output_text", event.get("content_index"), out)
            part.cited += len(found)
            out.extend(map(Annotation, found))

    def _progress(self, event: JsonObject, out: list[Delta]) -> None:
        told = self._find(event, "")
        if told.hosted >= 0 and not told.closed:
            fields = {name: value for name, value in event.items() if name not in _NO_FIELDS}
            out.append(HostedProgress(told.hosted, event["type"], self._shown(fields, told.kind)))

    def _added(self, event: JsonObject, out: list[Delta]) -> None:
        item = event.get("item")
        if not isinstance(item, dict):
            return
        told = self._place(event, item)
        match item.get("type"):
            case "message" | "reasoning":
                self._enter(told, item, out)
            case "function_call" | "custom_tool_call":
                self._open(told, item, out)
            case str() as kind if kind in _HOSTED and told.hosted < 0 and not told.closed:
                self._speaking = None
                told.hosted, self._hosted = self._hosted, self._hosted + 1
                out.append(HostedOpened(told.hosted, self._shown(item)))

    def _part_added(self, event: JsonObject, out: list[Delta]) -> None:
        found = event.get("part")
        if isinstance(found, dict):
            summary = "summary_index" in event
            kind = _KINDS.get("summary_text" if summary else text_of(found.get("type")))
            told = self._find(event, "reasoning" if kind in ("reasoning_text", "summary_text") else "message")
            if kind is not None and not told.closed:
                self._part(told, kind, event.get("summary_index" if summary else "content_index"), out)

    def _part_done(self, event: JsonObject, out: list[Delta]) -> None:
        """What its deltas left out is made up while it is open: once the next part begins it is too late."""
        told = self._find(event, "message")
        last = told.parts[-1] if told.parts else None
        if last is None or self._speaking is not told or told.closed:
            return
        index = event.get("summary_index" if last.kind == "summary_text" else "content_index")
        found = event.get("part", {**event, "type": last.kind})
        for whole in read_parts({"type": told.kind, "content": [found]}):
            if index == last.index and whole.text.startswith(last.text):
                self._make_up(last, whole, whole.text[len(last.text) :], out)

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
        told = Told(kind, id)
        self._items.append(told)
        if type(index) is int:
            self._by_index[index] = told
        if isinstance(id, str):
            self._by_id[id] = told
        return told

    def _enter(self, told: Told, item: JsonObject | None, out: list[Delta]) -> None:
        """From here on this item speaks; one that was left before its end goes on as another item."""
        if self._speaking is told or told.closed:
            return
        if item is not None:
            told.phase = told.phase or read_phase(item.get("phase"))
        self._speaking = told
        for part in told.parts:
            part.left = True
        out.append(ItemBegan("reasoning" if told.kind == "reasoning" else "message", told.phase, told.id))

    def _part(self, told: Told, kind: PartKind, index: Any, out: list[Delta]) -> ToldPart:
        """The part that an event is about: the one that is open, or the next."""
        self._enter(told, None, out)
        last = told.parts[-1] if told.parts and not told.parts[-1].left else None
        if last is not None and last.kind == kind and (index is None or last.index is None or last.index == index):
            return last
        return self._next_part(told, kind, index, out)

    def _next_part(self, told: Told, kind: PartKind, index: Any, out: list[Delta]) -> ToldPart:
        if told.parts and not told.parts[-1].opened:
            told.parts.pop()  # announced, and nothing said: its words will come with the whole item
        last = told.parts[-1] if told.parts and not told.parts[-1].left else None
        part = ToldPart(kind, index)
        if last is not None and last.kind == kind:
            part.opened = True
            out.append(PartBegan(kind))
        told.parts.append(part)
        return part

    def _open(self, told: Told, item: JsonObject, out: list[Delta]) -> None:
        if told.slot >= 0:
            return
        self._speaking = None
        told.slot, self._slots = self._slots, self._slots + 1
        told.custom = item.get("type") == "custom_tool_call"
        call_id = text_of(item.get("call_id")) or text_of(item.get("id"))
        out.append(CallOpened(told.slot, call_id or None, text_of(item.get("name"))))

    def _close(self, told: Told, item: JsonObject, out: list[Delta]) -> None:
        """The whole item: whatever its deltas did not say is said now."""
        if told.closed:
            return
        match item.get("type"):
            case "function_call" | "custom_tool_call":
                self._close_call(told, item, out)
            case "message" | "reasoning":
                self._close_speech(told, item, out)
            case str() as kind if kind in _HOSTED or kind.endswith("_call"):
                self._speaking = None
                out.append(HostedCall(self._shown(item), told.hosted if told.hosted >= 0 else None))
            case kind:
                words = f"an output item of type `{text_of(kind)[:64]}` has no counterpart here"
                out.append(Markup(words, "bridge.response.part_ignored"))
        told.closed = True

    def _shown(self, item: JsonObject, kind: str = "") -> JsonObject:
        """What an MCP server says may repeat the credentials that it was sent."""
        of_mcp = (kind or text_of(item.get("type"))).startswith("mcp_")
        shown: JsonObject = self._scrubber.json(item) if of_mcp else item
        return shown

    def _close_call(self, told: Told, item: JsonObject, out: list[Delta]) -> None:
        self._open(told, item, out)
        whole = text_of(item.get(_CALL_TEXT[item["type"]]))
        said = told.said
        end = _END if told.custom and item.get("status") != "incomplete" else ""
        if not said or not whole.startswith(said):  # nothing was told yet, or it is told anew: then the end is right
            text = f"{_BEGIN}{encode_inside(whole)}{end}" if told.custom else whole
            if text and (whole or not said):
                out.append(CallArguments(told.slot, text, replace=bool(said), whole=not said))
                return
        rest = whole[len(said) :]
        if rest:
            out.append(CallArguments(told.slot, encode_inside(rest) if told.custom else rest))
        if end:
            out.append(CallArguments(told.slot, end))

    def _close_speech(self, told: Told, item: JsonObject, out: list[Delta]) -> None:
        if not told.parts:
            self._enter(told, item, out)
        self._tell_rest(told, read_parts(item), out)
        if item.get("encrypted_content"):
            kept = {name: item[name] for name in ("type", "id", "summary", "encrypted_content") if name in item}
            out.append(VendorExtra("encrypted_content", [{"summary": [], **kept}]))
        if self._speaking is told:
            self._speaking = None
            phase = read_phase(item.get("phase"))
            known_now = phase if phase != told.phase else None
            out.append(ItemEnded("incomplete" if item.get("status") == "incomplete" else "completed", known_now))

    def _tell_rest(self, told: Told, whole: list[WholePart], out: list[Delta]) -> None:
        """What the whole parts say beyond what was streamed. What was said otherwise cannot be taken back."""
        said = {part.kind: told.spoken(part.kind) for part in whole}
        numbers: dict[PartKind, int] = {}
        for part in whole:
            number = numbers.get(part.kind, 0)
            numbers[part.kind] = number + 1
            before = said[part.kind]
            known = told.part(part.kind, number)
            if before.startswith(part.text):  # some vendors stream the parts of a message as one
                rest, said[part.kind] = "", before[len(part.text) :]
                if known is None and before:
                    continue
            elif part.text.startswith(before):
                rest, said[part.kind] = part.text[len(before) :], ""
            else:
                return
            over = self._speaking is not told or not told.parts or known is not told.parts[-1]
            if known is None or (rest and over):
                self._enter(told, None, out)
                known, over = self._next_part(told, part.kind, None, out), False
            if not over:
                self._make_up(known, part, rest, out)

    @staticmethod
    def _make_up(known: ToldPart, whole: WholePart, rest: str, out: list[Delta]) -> None:
        """What is missing of the part that is open."""
        if rest:
            known.say(rest)
            logprobs = whole.logprobs if rest == whole.text else None
            out.append(Text(rest, logprobs) if known.kind == "output_text" else _words(known.kind, rest))
        elif not known.opened:
            known.opened = True
            out.append(PartBegan(known.kind))
        out.extend(map(Annotation, whole.citations[known.cited :]))
        known.cited = max(known.cited, len(whole.citations))

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
        return Told(kind, id)


_BEGIN: Final = '{"input":"'
_END: Final = '"}'
_KINDS: Final[dict[str, PartKind]] = {
    "output_text": "output_text",
    "text": "output_text",
    "refusal": "refusal",
    "reasoning_text": "reasoning_text",
    "summary_text": "summary_text",
}

_EVENTS: Final = {
    "response.output_text.delta": ResponsesDecoder._speak,
    "response.refusal.delta": ResponsesDecoder._refuse,
    "response.reasoning_text.delta": ResponsesDecoder._think,
    "response.reasoning.delta": ResponsesDecoder._think,
    "response.reasoning_summary_text.delta": ResponsesDecoder._summarise,
    "response.function_call_arguments.delta": ResponsesDecoder._argue,
    "response.custom_tool_call_input.delta": ResponsesDecoder._argue,
    "response.output_text.annotation.added": ResponsesDecoder._annotate,
    "response.content_part.added": ResponsesDecoder._part_added,
    "response.reasoning_summary_part.added": ResponsesDecoder._part_added,
    "response.output_text.done": ResponsesDecoder._part_done,
    "response.refusal.done": ResponsesDecoder._part_done,
    "response.reasoning_text.done": ResponsesDecoder._part_done,
    "response.reasoning_summary_text.done": ResponsesDecoder._part_done,
    "response.content_part.done": ResponsesDecoder._part_done,
    "response.output_item.added": ResponsesDecoder._added,
    "response.output_item.done": ResponsesDecoder._done,
    "error": ResponsesDecoder._fail,
}


def _words(kind: PartKind, text: str) -> Delta:
    match kind:
        case "refusal":
            return Refusal(text)
        case "reasoning_text":
            return Reasoning(text)
        case "summary_text":
            return Reasoning(text, "summary")
        case _:
            return Text(text)


def _usage_rules(rules: ReplyRules) -> ReplyRules:
    return msgspec.structs.replace(
        rules,
        cached_tokens=["input_tokens_details.cached_tokens", *rules.cached_tokens],
        reasoning_tokens=["output_tokens_details.reasoning_tokens", *rules.reasoning_tokens],
    )
