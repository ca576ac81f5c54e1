"""Responses events → the events of a Messages stream, and a finished response → a message: the stream, folded.

The same events that a Responses client gets are told in the other language: nothing is decided here. One block is open
at a time, and blocks are counted here: what belongs to another item than the one that is being told waits until that is
done, for clients lose their place otherwise (CLIProxyAPI#539). A thinking block ends with one signature: the envelope
that the item carries. Where a client wants no words of thinking, or there are none, the block is empty, but signed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from isthmus.bridge.doors.messages.failures import kind_of_code
from isthmus.bridge.doors.messages.fold import fold_message
from isthmus.bridge.doors.messages.report import render_usage, stop_of
from isthmus.protocol.events import Event
from isthmus.protocol.items import Annotation
from isthmus.protocol.json import JsonObject, write_json
from isthmus.protocol.response import Response

_BETWEEN: Final = "\n\n"
USE_ID: Final = "srvtoolu_"
"""How ids of searches begin; the rest is that of the item."""
_SEARCHED: Final = "web_search_tool_result"
_PING: Final[JsonObject] = {"type": "ping"}
_TEXT: Final[JsonObject] = {"type": "text", "text": ""}
_THOUGHT: Final[JsonObject] = {"type": "thinking", "thinking": "", "signature": ""}


class MessagesRenderer:
    def __init__(self, *, model: str = "", shows_thinking: bool = True, input_tokens: int = 0) -> None:
        """`model`: the name that the client asked by: under another one it takes its own thinking for somebody else's,
        and drops it (Claude Code 2.1.325). `input_tokens`: an estimate, for those who look at the beginning; the end
        has the figures."""
        self._model = model
        self._shows_thinking = shows_thinking
        self._input_tokens = input_tokens
        self._index = -1
        self._open = False
        """Whether the block at the index is open."""
        self._telling: int | None = None
        """The item that is being told."""
        self._waiting: dict[int, list[Any]] = {}
        """What came of others meanwhile, in the order in which they began."""
        self._argued = 0
        """Characters of the arguments of the call that is being told."""
        self._paused = False
        """Whether a part of the thinking is over, and another may follow."""
        self._searches = 0
        self._searching = ""
        """The item whose question was told."""

    def render(self, event: Event) -> list[JsonObject]:
        """The frames that one event becomes: mostly one, often none."""
        given: Any = event
        index = given.get("output_index")
        if index is None:
            return self._tell_response(given)
        if self._telling is None:
            self._telling = index
        if index != self._telling:
            self._waiting.setdefault(index, []).append(given)
            return []
        frames = self._tell(given)
        return frames if self._telling is not None or not self._waiting else [*frames, *self._catch_up()]

    def _tell(self, event: JsonObject) -> list[JsonObject]:
        tell = _TELLS.get(event["type"])
        return [] if tell is None else tell(self, event)

    def _catch_up(self) -> list[JsonObject]:
        """What waited has its turn, item by item, up to one that goes on."""
        frames: list[JsonObject] = []
        while self._telling is None and self._waiting:
            self._telling = next(iter(self._waiting))
            for event in self._waiting.pop(self._telling):
                frames += self._tell(event)
        return frames

    def _tell_response(self, event: JsonObject) -> list[JsonObject]:
        response: Response = event["response"]
        match event["type"]:
            case "response.created":
                return [{"type": "message_start", "message": self._begun(response)}]
            case "response.in_progress":
                return [_PING]
            case "response.completed" | "response.incomplete":
                return self._finish(response)
            case "response.failed":
                error = response.get("error") or {"code": "server_error", "message": "the response was cancelled"}
                told = {"type": kind_of_code(error["code"]), "message": error["message"]}
                # What is open stays so: a block that ends is whole for a client, which would take half a call for one.
                return [{"type": "error", "error": told}]
        return []

    def _begun(self, response: Response) -> JsonObject:
        return {
            "id": "msg_" + response["id"].removeprefix("resp_"),
            "type": "message",
            "role": "assistant",
            "model": self._model or response["model"],
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "stop_details": None,
            "usage": render_usage(response, self._input_tokens),
        }

    def _finish(self, response: Response) -> list[JsonObject]:
        usage = render_usage(response, self._input_tokens, self._searches)
        last: JsonObject = {"type": "message_delta", "delta": stop_of(response), "usage": usage}
        if (told := response.get("isthmus")) is not None:
            last["isthmus"] = told
        return [last, {"type": "message_stop"}]

    # Blocks

    def _begin(self, block: JsonObject) -> JsonObject:
        self._index += 1
        self._open = True
        return {"type": "content_block_start", "index": self._index, "content_block": block}

    def _delta(self, delta: JsonObject) -> JsonObject:
        return {"type": "content_block_delta", "index": self._index, "delta": delta}

    def _end(self) -> list[JsonObject]:
        if not self._open:
            return []
        self._open = False
        return [{"type": "content_block_stop", "index": self._index}]

    def _say(self, event: JsonObject) -> list[JsonObject]:
        text = event["delta"]
        if not text:
            return []
        begun = [] if self._open else [self._begin(_TEXT)]
        return [*begun, self._delta({"type": "text_delta", "text": text})]

    def _cite(self, event: JsonObject) -> list[JsonObject]:
        citation = _citation(event["annotation"])
        if citation is None or not self._open:
            return []
        return [self._delta({"type": "citations_delta", "citation": citation})]

    def _end_part(self, event: JsonObject) -> list[JsonObject]:
        """Each text is a block of its own; thinking goes on in its block."""
        if event["part"]["type"] in ("output_text", "refusal"):
            return self._end()
        self._paused = self._open
        return []

    def _think(self, event: JsonObject) -> list[JsonObject]:
        if not self._shows_thinking or not event["delta"]:
            return []
        frames = [] if self._open else [self._begin(_THOUGHT)]
        text = _BETWEEN + event["delta"] if self._paused else event["delta"]
        self._paused = False
        return [*frames, self._delta({"type": "thinking_delta", "thinking": text})]

    def _argue(self, event: JsonObject) -> list[JsonObject]:
        self._argued += len(event["delta"])
        return self._input(event["delta"])

    def _input(self, text: str) -> list[JsonObject]:
        return [self._delta({"type": "input_json_delta", "partial_json": text})] if text else []

    # Items

    def _open_item(self, event: JsonObject) -> list[JsonObject]:
        item = event["item"]
        self._argued, self._paused = 0, False
        if item["type"] == "web_search_call" and _asks(item):
            return self._ask(item)
        if item["type"] != "function_call":
            return []
        return [self._begin({"type": "tool_use", "id": item["call_id"], "name": item["name"], "input": {}})]

    def _close_item(self, event: JsonObject) -> list[JsonObject]:
        item = event["item"]
        self._telling = None
        match item["type"]:
            case "reasoning":
                return self._sign(item.get("encrypted_content") or "")
            case "function_call":
                return [*self._input(item["arguments"][self._argued :]), *self._end()]
            case "web_search_call":
                return self._search(item)
        return self._end()

    def _sign(self, signature: str) -> list[JsonObject]:
        if not self._open and not signature:
            return []
        frames = [] if self._open else [self._begin(_THOUGHT)]
        return [*frames, self._delta({"type": "signature_delta", "signature": signature}), *self._end()]

    def _ask(self, item: JsonObject) -> list[JsonObject]:
        """What a search looks for, as soon as that is known."""
        self._searching = item["id"]
        asked = self._begin({"type": "server_tool_use", "id": _use_id(item), "name": "web_search", "input": {}})
        action = item.get("action") or {}
        more = {name: action[name] for name in ("url", "pattern") if action.get(name)}
        if len(action.get("queries") or ()) > 1:
            more["queries"] = action["queries"]
        query = write_json({"query": action.get("query") or "", **more})
        return [asked, self._delta({"type": "input_json_delta", "partial_json": query}), *self._end()]

    def _search(self, item: JsonObject) -> list[JsonObject]:
        """A search that ran: what was asked, and what it found. What the model read of it travels with the first
        page."""
        self._searches += 1
        frames = [] if self._searching == item["id"] else self._ask(item)
        sources = [source for source in (item.get("action") or {}).get("sources") or () if isinstance(source, dict)]
        sealed = item.get("encrypted_content") or ""
        found: Any = [_found(source, "" if index else sealed) for index, source in enumerate(sources)]
        if item.get("status") == "failed":
            found = {"type": "web_search_tool_result_error", "error_code": "unavailable"}
        block = {"type": _SEARCHED, "tool_use_id": _use_id(item), "content": found}
        return [*frames, self._begin(block), *self._end()]


def render_message(events: Iterable[Event], *, model: str = "", shows_thinking: bool = True) -> JsonObject:
    """The events of a response that has ended, and did not fail, in one piece."""
    renderer = MessagesRenderer(model=model, shows_thinking=shows_thinking)
    return fold_message(frame for event in events for frame in renderer.render(event))


def _citation(given: Annotation) -> JsonObject | None:
    if given.get("type") != "url_citation":
        return None
    url, title = given.get("url"), given.get("title")
    return {
        "type": "web_search_result_location",
        "url": url,
        "title": title or url,
        "cited_text": "",
        "encrypted_index": "",
    }


def _use_id(item: JsonObject) -> str:
    return f"{USE_ID}{item['id']}"


def _asks(item: JsonObject) -> bool:
    """Whether it is known what a search looks for: a provider may tell that at its end."""
    action = item.get("action")
    return isinstance(action, dict) and bool(action.get("query") or action.get("url"))


def _found(source: JsonObject, sealed: str) -> JsonObject:
    url = source.get("url") or ""
    title = source.get("title") or url
    return {"type": "web_search_result", "title": title, "url": url, "encrypted_content": sealed, "page_age": None}


_TELLS: Final[Mapping[str, Callable[[MessagesRenderer, JsonObject], list[JsonObject]]]] = {
    "response.output_text.delta": MessagesRenderer._say,
    "response.refusal.delta": MessagesRenderer._say,
    "response.output_text.annotation.added": MessagesRenderer._cite,
    "response.content_part.done": MessagesRenderer._end_part,
    "response.reasoning_summary_part.done": MessagesRenderer._end_part,
    "response.reasoning_text.delta": MessagesRenderer._think,
    "response.reasoning_summary_text.delta": MessagesRenderer._think,
    "response.function_call_arguments.delta": MessagesRenderer._argue,
    "response.output_item.added": MessagesRenderer._open_item,
    "response.output_item.done": MessagesRenderer._close_item,
}
