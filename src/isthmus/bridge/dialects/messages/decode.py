"""Anthropic Messages events and replies → the same deltas that every dialect gives.

A reply is a list of blocks; a stream tells them one by one. Thinking, text and calls keep their order and their bounds,
so what a turn thought between two calls stays between them. A thinking block goes back to its model as it came, with
its signature: it travels as vendor state inside the reasoning item that shows it. Vendors that copy the protocol repeat
`message_start`, reuse an index, leave out the end of a block, or think inside a text block: a delta is read by its own
type, and a block that has no end ends where the next one begins.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

import msgspec

from isthmus.bridge import deltas
from isthmus.bridge.capabilities import ReplyRules
from isthmus.bridge.deltas import Delta
from isthmus.bridge.dialects.decoder import JsonDecoder
from isthmus.bridge.dialects.messages.reports import read_citation, read_failure, read_usage, web_search_call
from isthmus.bridge.dialects.reports import text_of
from isthmus.bridge.types.history import MODEL, THINKING
from isthmus.protocol.json import JsonObject
from isthmus.scrub import Scrubber

_SEARCH_RESULT: Final = "web_search_tool_result"
_UNREMARKABLE: Final = frozenset({"server_tool_use", _SEARCH_RESULT})


@dataclass(slots=True, eq=False)
class _Block:
    """A block that is open; `whole` is what it was begun with."""

    kind: str
    whole: JsonObject
    slot: int = -1
    pieces: list[str] = field(default_factory=list)
    signature: str = ""


_Tell = Callable[["MessagesDecoder", _Block | None, JsonObject, list[Delta]], None]


class MessagesDecoder(JsonDecoder):
    _unit = "an event"

    def __init__(
        self, rules: ReplyRules, model: str = "", scrubber: Scrubber | None = None, *, hosts: bool = False
    ) -> None:
        """`model`: the one that was asked; its thinking goes back to no other. `hosts`: whether the provider runs tools
        itself: then it may pause, and gets all of its turn back."""
        super().__init__(rules, scrubber)
        self._kept: list[JsonObject] | None = [] if hosts else None
        self._model = model
        self._thought: Callable[[str], Delta] = _summarised if rules.summarised else deltas.Reasoning
        self._blocks: dict[Any, _Block] = {}
        self._usage: JsonObject = {}
        self._calls = 0
        self._spoke = False  # whether the last thing that was told is text: more of it is another part
        self._finished = False
        self._searches: dict[str, JsonObject] = {}
        self._ignored: set[str] = set()

    def _read(self, event: JsonObject, out: list[Delta]) -> None:
        kind = event.get("type")
        tell = _EVENTS.get(kind) if isinstance(kind, str) else None
        if tell is not None:
            tell(self, event, out)
        elif kind is None and event.get("error") is not None:
            self._fail(event, out)

    def _read_whole(self, reply: JsonObject, out: list[Delta]) -> None:
        content = reply.get("content")
        if reply.get("type") == "error" or not isinstance(content, list):
            missing = deltas.Failed("the upstream's reply has no content")
            out.append(missing if reply.get("error") is None else read_failure(reply["error"], self._scrub))
            return
        for block in content:
            if isinstance(block, dict):
                self._end_block(self._begin(block, out), out)
        self._spend(reply.get("usage"), out)
        self._finish(reply, out)

    # Events

    def _start(self, event: JsonObject, out: list[Delta]) -> None:
        message = event.get("message")
        if isinstance(message, dict):
            self._spend(message.get("usage"), out)

    def _block_start(self, event: JsonObject, out: list[Delta]) -> None:
        index, block = event.get("index"), event.get("content_block")
        self._end_blocks(out, but=_calls_of(self._blocks, block, index))
        if isinstance(block, dict):
            self._blocks[index] = self._begin(block, out)

    def _block_delta(self, event: JsonObject, out: list[Delta]) -> None:
        delta = event.get("delta")
        if isinstance(delta, dict) and (tell := _DELTAS.get(delta.get("type"))) is not None:
            block = self._blocks.get(event.get("index"))
            tell(self, block, delta, out)
            if (name := _WORDS.get(delta["type"])) is not None and isinstance(delta.get(name), str):
                self._said = delta, name, partial(self._go_on_in, block, tell, name)

    def _go_on_in(self, block: _Block | None, tell: _Tell, name: str, texts: list[str], out: list[Delta]) -> None:
        for text in texts:
            tell(self, block, {name: text}, out)

    def _block_stop(self, event: JsonObject, out: list[Delta]) -> None:
        block = self._blocks.pop(event.get("index"), None)
        if block is not None:
            self._end_block(block, out)

    def _message_delta(self, event: JsonObject, out: list[Delta]) -> None:
        self._end_blocks(out)
        self._spend(event.get("usage"), out)
        delta = event.get("delta")
        if isinstance(delta, dict) and delta.get("stop_reason") is not None:
            self._finish(delta, out)

    def _stop(self, event: JsonObject, out: list[Delta]) -> None:
        self._end_blocks(out)
        if not self._finished:  # some never say why they stop, but that they do
            out.append(deltas.Finished("tool_use" if self._calls else "end_turn"))
        self.done = True

    def _fail(self, event: JsonObject, out: list[Delta]) -> None:
        error = event.get("error")
        out.append(read_failure(event if error is None else error, self._scrub))
        self.done = True

    # Blocks

    def _begin(self, whole: JsonObject, out: list[Delta]) -> _Block:
        block = _Block(text_of(whole.get("type")), whole)
        match block.kind:
            case "text":
                if text := text_of(whole.get("text")):
                    self._say(block, {"text": text}, out)
                for citation in whole.get("citations") or ():
                    self._cite(block, {"citation": citation}, out)
            case "thinking":
                self._spoke = False
                out.append(deltas.ItemBegan("reasoning"))
                block.signature = text_of(whole.get("signature"))
                if text := text_of(whole.get("thinking")):
                    self._think(block, {"thinking": text}, out)
            case "redacted_thinking":
                self._spoke = False
                out.append(deltas.ItemBegan("reasoning"))
            case "tool_use":
                self._spoke = False
                block.slot, self._calls = self._calls, self._calls + 1
                out.append(deltas.CallOpened(block.slot, text_of(whole.get("id")) or None, text_of(whole.get("name"))))
            case kind if kind not in _UNREMARKABLE:
                self._ignore(kind, out)
        return block

    def _end_block(self, block: _Block, out: list[Delta]) -> None:
        match block.kind:
            case "text" if block.pieces:
                self._keep({"type": "text", "text": "".join(block.pieces)})
            case "thinking":
                text = "".join(block.pieces)
                self._seal({"type": "thinking", "thinking": text, "signature": block.signature}, out)
            case "redacted_thinking":
                self._seal(dict(block.whole), out)
            case "tool_use" if not block.pieces:
                # Nothing was streamed: it was all there from the beginning, or the call has no arguments.
                given = block.whole.get("input")
                arguments = msgspec.json.encode(given if isinstance(given, dict) else {}).decode()
                out.append(deltas.CallArguments(block.slot, arguments, whole=True))
            case "server_tool_use":
                given = _parsed(block.pieces) if block.pieces else block.whole.get("input")
                self._searches[text_of(block.whole.get("id"))] = asked = {**block.whole, "input": given}
                self._keep(asked)
            case kind if kind == _SEARCH_RESULT:
                self._spoke = False
                self._keep(dict(block.whole))
                asked = self._searches.pop(text_of(block.whole.get("tool_use_id")), {})
                out.append(deltas.HostedCall(web_search_call(asked, block.whole)))

    def _end_blocks(self, out: list[Delta], but: tuple[Any, ...] = ()) -> None:
        for index in [index for index in self._blocks if index not in but]:
            self._end_block(self._blocks.pop(index), out)

    def _seal(self, block: JsonObject, out: list[Delta]) -> None:
        self._keep(block)
        out += [deltas.VendorExtra(THINKING, [block]), deltas.VendorExtra(MODEL, self._model), deltas.ItemEnded()]

    def _keep(self, block: JsonObject) -> None:
        if self._kept is not None:
            self._kept.append(block)

    # What comes in pieces

    def _say(self, block: _Block | None, delta: JsonObject, out: list[Delta]) -> None:
        text = delta.get("text")
        if not isinstance(text, str) or not text:
            return
        if block is not None and block.kind == "text" and not block.pieces:
            if self._spoke:
                out.append(deltas.PartBegan("output_text"))
            block.pieces.append("")  # it has begun
        if block is not None and self._kept is not None:
            block.pieces.append(text)  # the words themselves are needed only by a provider that may pause
        self._spoke = True
        out.append(deltas.Text(text))

    def _think(self, block: _Block | None, delta: JsonObject, out: list[Delta]) -> None:
        text = delta.get("thinking")
        if isinstance(text, str) and text:
            if block is not None and block.kind == "thinking":
                block.pieces.append(text)
            self._spoke = False
            out.append(self._thought(text))

    def _sign(self, block: _Block | None, delta: JsonObject, out: list[Delta]) -> None:
        if block is not None and isinstance(delta.get("signature"), str):
            block.signature = delta["signature"]  # of several the last one counts, as in the vendor's own client

    def _argue(self, block: _Block | None, delta: JsonObject, out: list[Delta]) -> None:
        text = delta.get("partial_json")
        if block is not None and isinstance(text, str) and text:
            block.pieces.append(text if block.kind == "server_tool_use" else "")
            if block.slot >= 0:
                out.append(deltas.CallArguments(block.slot, text))

    def _cite(self, block: _Block | None, delta: JsonObject, out: list[Delta]) -> None:
        citation = read_citation(delta.get("citation"))
        if citation is not None:
            out.append(deltas.Annotation(citation))

    def _ignore(self, kind: str, out: list[Delta]) -> None:
        name = kind[:64]
        if name not in self._ignored:  # said once for each kind
            self._ignored.add(name)
            words = f"a block of type `{name}` of the answer has no counterpart here"
            out.append(deltas.Markup(words, "bridge.response.part_ignored"))

    # The end

    def _spend(self, usage: Any, out: list[Delta]) -> None:
        """Counts are cumulative, and a later report may leave out what an earlier one told."""
        if isinstance(usage, dict):
            self._usage |= {name: value for name, value in usage.items() if value is not None}
            told = read_usage(self._usage)
            if told is not None:
                out.append(deltas.Used(told))

    def _finish(self, told: JsonObject, out: list[Delta]) -> None:
        reason, details = told.get("stop_reason"), told.get("stop_details")
        if reason == "refusal" and isinstance(details, dict) and (words := text_of(details.get("explanation"))):
            out.append(deltas.Refusal(words))
        if reason == "pause_turn" and self._kept and not self._calls:
            out.append(deltas.TurnPaused(self._kept))
        self._finished = True
        reason = reason if isinstance(reason, str) else None
        met = text_of(told.get("stop_sequence")) or (deltas.SOME_STOP if reason == deltas.SOME_STOP else None)
        out.append(deltas.Finished(self._rules.finish_reasons.get(reason or "", reason), met))


def _calls_of(blocks: Mapping[Any, _Block], begun: Any, at: Any) -> tuple[Any, ...]:
    """Two calls may be open at the same time: a call goes on while another begins, unless that takes its index."""
    if not isinstance(begun, dict) or begun.get("type") != "tool_use":
        return ()
    return tuple(index for index, block in blocks.items() if block.kind == "tool_use" and index != at)


def _summarised(text: str) -> Delta:
    return deltas.Reasoning(text, "summary")


def _parsed(pieces: list[str]) -> Any:
    try:
        return msgspec.json.decode("".join(pieces))
    except (msgspec.DecodeError, RecursionError):
        return None


_WORDS: Final[Mapping[str, str]] = {
    "text_delta": "text",
    "thinking_delta": "thinking",
    "input_json_delta": "partial_json",
}
"""Deltas that are nothing but a text."""
_EVENTS: Final[Mapping[str, Callable[[MessagesDecoder, JsonObject, list[Delta]], None]]] = {
    "content_block_delta": MessagesDecoder._block_delta,
    "content_block_start": MessagesDecoder._block_start,
    "content_block_stop": MessagesDecoder._block_stop,
    "message_start": MessagesDecoder._start,
    "message_delta": MessagesDecoder._message_delta,
    "message_stop": MessagesDecoder._stop,
    "error": MessagesDecoder._fail,
}
_DELTAS: Final[Mapping[Any, _Tell]] = {
    "text_delta": MessagesDecoder._say,
    "thinking_delta": MessagesDecoder._think,
    "input_json_delta": MessagesDecoder._argue,
    "signature_delta": MessagesDecoder._sign,
    "citations_delta": MessagesDecoder._cite,
}
