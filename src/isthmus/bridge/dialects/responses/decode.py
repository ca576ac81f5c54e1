"""Native Responses events and objects → the same deltas that every dialect gives.

Providers differ in what they stream: some send only `output_item.done`, some only the final object, some
both, and some leave out indexes or ids. Each item is told once, by whichever comes first; what its deltas
left out is made up from its end. Items and parts keep their bounds. Custom input arrives as plain text and is
wrapped the way the tool's reader expects it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from isthmus.bridge import deltas
from isthmus.bridge.capabilities import ReplyRules
from isthmus.bridge.deltas import Delta, PartKind
from isthmus.bridge.dialects.chat.failures import read_error
from isthmus.bridge.dialects.decoder import JsonDecoder
from isthmus.bridge.dialects.reports import read_annotations, read_logprobs, read_phase, read_usage, seal, text_of
from isthmus.bridge.dialects.responses.told import Told, ToldItems, ToldPart, read_parts, text_of_part
from isthmus.protocol.events import HOSTED_STEPS
from isthmus.protocol.json import JsonObject
from isthmus.scrub import Scrubber

_HOSTED: Final = frozenset(
    {
        *("web_search_call", "file_search_call", "code_interpreter_call", "image_generation_call"),
        *("mcp_call", "mcp_list_tools", "mcp_approval_request"),
    }
)
"""Items that are told from their beginning on. Other calls (`computer_call` …) are passed on when they are whole."""
_NO_FIELDS: Final = frozenset({"type", "sequence_number", "output_index", "item_id"})
_BEGIN: Final = '{"input":"'
_END: Final = '"}'
_SPEAKS: Final[Mapping[str, PartKind]] = {
    "response.output_text.delta": "output_text",
    "response.refusal.delta": "refusal",
    "response.reasoning_text.delta": "reasoning_text",
    "response.reasoning.delta": "reasoning_text",
    "response.reasoning_summary_text.delta": "summary_text",
}
_WORDS: Final[Mapping[PartKind, tuple[str, str, Callable[[str], Delta]]]] = {
    "output_text": ("message", "content_index", deltas.Text),
    "refusal": ("message", "content_index", deltas.Refusal),
    "reasoning_text": ("reasoning", "content_index", deltas.Reasoning),
    "summary_text": ("reasoning", "summary_index", lambda text: deltas.Reasoning(text, "summary")),
}
"""For each kind of part the item that it is of, the field that counts it, and its delta."""
_PART_KINDS: Final[Mapping[str, PartKind]] = {"text": "output_text", **{kind: kind for kind in _WORDS}}


class ResponsesDecoder(JsonDecoder):
    _unit = "an event"

    def __init__(self, rules: ReplyRules, scrubber: Scrubber | None = None) -> None:
        super().__init__(rules, scrubber)
        self._items = ToldItems()
        self._speaking: Told | None = None  # the message or reasoning item that the deltas are in
        self._calls = self._hosted = 0

    def _read(self, event: JsonObject, out: list[Delta]) -> None:
        kind = event.get("type")
        tell = _EVENTS.get(kind) if isinstance(kind, str) else None
        if tell is not None:
            tell(self, event, out)
        elif kind is None and event.get("error") is not None:
            self._fail(event, out)

    def _read_whole(self, reply: JsonObject, out: list[Delta]) -> None:
        if isinstance(reply.get("output"), list):
            self._finish(reply, "completed", out)
        else:
            error, missing = reply.get("error"), deltas.Failed("the upstream's reply has no output")
            out.append(missing if error is None else read_error(error, self._scrub))

    def _say(self, event: JsonObject, out: list[Delta]) -> None:
        text = event.get("delta")
        if isinstance(text, str) and text:
            kind = _SPEAKS[event["type"]]
            self._part(event, kind, out).say(text)
            logprobs = event.get("logprobs") if kind == "output_text" else None
            out.append(deltas.Text(text, read_logprobs(logprobs)) if logprobs else _WORDS[kind][2](text))

    def _argue(self, event: JsonObject, out: list[Delta]) -> None:
        text = event.get("delta")
        told = self._items.find(event, "")
        if told.slot is not None and not told.closed and isinstance(text, str) and text:
            custom = told.kind == "custom_tool_call"
            if custom and not told.pieces:
                out.append(deltas.CallArguments(told.slot, _BEGIN))
            told.pieces.append(text)
            out.append(deltas.CallArguments(told.slot, _encode_inside(text) if custom else text))

    def _annotate(self, event: JsonObject, out: list[Delta]) -> None:
        found = read_annotations([event.get("annotation")])
        if found:
            self._part(event, "output_text", out).cited += len(found)
            out.extend(map(deltas.Annotation, found))

    def _progress(self, event: JsonObject, out: list[Delta]) -> None:
        told = self._items.find(event, "")
        if told.hosted is not None and not told.closed:
            fields = {name: value for name, value in event.items() if name not in _NO_FIELDS}
            out.append(deltas.HostedProgress(told.hosted, event["type"], self._shown(fields, told.kind)))

    def _item(self, event: JsonObject, out: list[Delta]) -> None:
        item = event.get("item")
        if isinstance(item, dict):
            told = self._items.find(event, text_of(item.get("type")), item)
            if event["type"] == "response.output_item.done":
                self._close(told, item, out)
            else:
                self._begin(told, item, out)

    def _part_added(self, event: JsonObject, out: list[Delta]) -> None:
        found = event.get("part")
        given = text_of(found.get("type")) if isinstance(found, dict) else ""
        kind = _PART_KINDS.get("summary_text" if "summary_index" in event else given)
        if kind is not None and not self._items.find(event, _WORDS[kind][0]).closed:
            self._part(event, kind, out)

    def _part_done(self, event: JsonObject, out: list[Delta]) -> None:
        """What its deltas left out is made up while it is open: once the next part begins it is too late."""
        told = self._speaking
        if told is None or not told.parts or told is not self._items.find(event, told.kind):
            return
        last = told.parts[-1]
        found = event.get("part", {**event, "type": last.kind})
        if event.get(_WORDS[last.kind][1]) == last.index and isinstance(found, dict):
            text = text_of_part(found)
            if text.startswith(last.text):
                self._make_up(last, found, text[len(last.text) :], out)

    def _end(self, event: JsonObject, out: list[Delta]) -> None:
        response = event.get("response")
        self._finish(response if isinstance(response, dict) else {}, event["type"].removeprefix("response."), out)
        self.done = True

    def _fail(self, event: JsonObject, out: list[Delta]) -> None:
        error = event["error"] if isinstance(event.get("error"), dict | str) else event
        out.append(read_error(error, self._scrub))
        self.done = True

    def _begin(self, told: Told, item: JsonObject, out: list[Delta]) -> None:
        match item.get("type"):
            case "message" | "reasoning":
                self._enter(told, out, item)
            case "function_call" | "custom_tool_call":
                self._open(told, item, out)
            case str() as kind if kind in _HOSTED and told.hosted is None and not told.closed:
                self._speaking = None
                told.hosted, self._hosted = self._hosted, self._hosted + 1
                out.append(deltas.HostedOpened(told.hosted, self._shown(item, kind)))

    def _enter(self, told: Told, out: list[Delta], item: JsonObject | None = None) -> None:
        """From here on this item speaks; one that was left before its end goes on as another item."""
        if self._speaking is not told and not told.closed:
            told.phase = told.phase or read_phase((item or {}).get("phase"))
            told.drop_unsaid()
            told.left = len(told.parts)
            self._speaking = told
            out.append(deltas.ItemBegan("reasoning" if told.kind == "reasoning" else "message", told.phase, told.id))

    def _part(self, event: JsonObject, kind: PartKind, out: list[Delta]) -> ToldPart:
        """The part that an event is about: the one that is open, or the next."""
        item_kind, counted_by, _ = _WORDS[kind]
        told, index = self._items.find(event, item_kind), event.get(counted_by)
        self._enter(told, out)
        last = told.open_part(kind)
        if last is not None and (index is None or last.index is None or last.index == index):
            return last
        return self._next_part(told, kind, out, index)

    def _next_part(self, told: Told, kind: PartKind, out: list[Delta], index: Any = None) -> ToldPart:
        told.drop_unsaid()
        part = ToldPart(kind, index)
        if told.open_part(kind) is not None:
            part.opened = True
            out.append(deltas.PartBegan(kind))
        told.parts.append(part)
        return part

    def _open(self, told: Told, item: JsonObject, out: list[Delta]) -> int:
        if told.slot is None:
            self._speaking = None
            told.slot, self._calls = self._calls, self._calls + 1
            call_id = text_of(item.get("call_id")) or text_of(item.get("id"))
            out.append(deltas.CallOpened(told.slot, call_id or None, text_of(item.get("name"))))
        return told.slot

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
                out.append(deltas.HostedCall(self._shown(item, kind), told.hosted))
            case kind:
                words = f"an output item of type `{text_of(kind)[:64]}` has no counterpart here"
                out.append(deltas.Markup(words, "bridge.response.part_ignored"))
        told.closed = True

    def _shown(self, item: JsonObject, kind: str) -> JsonObject:
        """What an MCP server says may repeat the credentials that it was sent."""
        shown: JsonObject = self._scrubber.json(item) if kind.startswith("mcp_") else item
        return shown

    def _close_call(self, told: Told, item: JsonObject, out: list[Delta]) -> None:
        slot = self._open(told, item, out)
        custom = told.kind == "custom_tool_call"
        whole = text_of(item.get("arguments" if item["type"] == "function_call" else "input"))
        said = "".join(told.pieces)
        end = _END if custom and item.get("status") != "incomplete" else ""
        if not said or not whole.startswith(said):  # nothing was told yet, or it is told anew: then the end is right
            text = f"{_BEGIN}{_encode_inside(whole)}{end}" if custom else whole
            if text and (whole or not said):
                out.append(deltas.CallArguments(slot, text, replace=bool(said), whole=not said))
                return
        rest = whole[len(said) :]
        texts = (_encode_inside(rest) if custom else rest, end)
        out.extend(deltas.CallArguments(slot, text) for text in texts if text)

    def _close_speech(self, told: Told, item: JsonObject, out: list[Delta]) -> None:
        if not told.parts:
            self._enter(told, out, item)
        self._tell_rest(told, item, out)
        if item.get("encrypted_content"):
            out.append(seal(item))
        if self._speaking is told:
            self._speaking = None
            phase = read_phase(item.get("phase"))
            known_now = phase if phase != told.phase else None
            out.append(deltas.ItemEnded("incomplete" if item.get("status") == "incomplete" else "completed", known_now))

    def _tell_rest(self, told: Told, item: JsonObject, out: list[Delta]) -> None:
        """What the whole parts say beyond what was streamed. What was said otherwise cannot be taken back."""
        streamed = {kind: [part for part in told.parts if part.kind == kind] for kind in _WORDS}
        said = {kind: "".join(part.text for part in parts) for kind, parts in streamed.items()}
        for kind, part in read_parts(item):
            before, text = said[kind], text_of_part(part)
            known = streamed[kind].pop(0) if streamed[kind] else None
            if before.startswith(text):  # some vendors stream the parts of a message as one
                rest, said[kind] = "", before[len(text) :]
                if known is None and before:
                    continue
            elif text.startswith(before):
                rest, said[kind] = text[len(before) :], ""
            else:
                return
            over = self._speaking is not told or not told.parts or known is not told.parts[-1]
            if known is None or (rest and over):
                self._enter(told, out)
                known, over = self._next_part(told, kind, out), False
            if not over:
                self._make_up(known, part, rest, out)

    @staticmethod
    def _make_up(known: ToldPart, whole: JsonObject, rest: str, out: list[Delta]) -> None:
        if rest:
            known.say(rest)
            logprobs = whole.get("logprobs") if rest == text_of_part(whole) else None
            out.append(deltas.Text(rest, read_logprobs(logprobs)) if logprobs else _WORDS[known.kind][2](rest))
        elif not known.opened:
            known.opened = True
            out.append(deltas.PartBegan(known.kind))
        citations = read_annotations(whole.get("annotations"))
        out.extend(map(deltas.Annotation, citations[known.cited :]))
        known.cited = max(known.cited, len(citations))

    def _finish(self, response: JsonObject, status: str, out: list[Delta]) -> None:
        """The final object: items that were not told yet, the usage, and how it ended."""
        for told, item in self._items.match(response.get("output")):
            self._close(told, item, out)
        usage = read_usage(response.get("usage"), self._rules)
        if usage is not None:
            out.append(deltas.Used(usage))
        error = response.get("error")
        match response.get("status") or ("completed" if status == "done" else status):
            case "completed" if not error:
                out.append(deltas.Finished("tool_calls" if self._calls else "stop"))
            case "incomplete":
                details = response.get("incomplete_details")
                reason = details.get("reason") if isinstance(details, dict) else None
                out.append(deltas.Finished("content_filter" if reason == "content_filter" else "length"))
            case _:
                out.append(read_error(error, self._scrub) if error else deltas.Failed("the upstream's response failed"))


_EVENTS: Final[Mapping[str, Callable[[ResponsesDecoder, JsonObject, list[Delta]], None]]] = {
    **dict.fromkeys(_SPEAKS, ResponsesDecoder._say),
    **dict.fromkeys((f"{name.removesuffix('.delta')}.done" for name in _SPEAKS), ResponsesDecoder._part_done),
    **dict.fromkeys(HOSTED_STEPS, ResponsesDecoder._progress),
    "response.function_call_arguments.delta": ResponsesDecoder._argue,
    "response.custom_tool_call_input.delta": ResponsesDecoder._argue,
    "response.output_text.annotation.added": ResponsesDecoder._annotate,
    "response.content_part.added": ResponsesDecoder._part_added,
    "response.reasoning_summary_part.added": ResponsesDecoder._part_added,
    "response.content_part.done": ResponsesDecoder._part_done,
    "response.output_item.added": ResponsesDecoder._item,
    "response.output_item.done": ResponsesDecoder._item,
    **dict.fromkeys(
        (f"response.{end}" for end in ("completed", "incomplete", "failed", "cancelled", "done")), ResponsesDecoder._end
    ),
    "error": ResponsesDecoder._fail,
}


def _encode_inside(text: str) -> str:
    """Text as it stands between the quotes of a JSON string."""
    return msgspec.json.encode(text).decode()[1:-1]
