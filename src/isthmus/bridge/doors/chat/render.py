"""Responses events → Chat Completions chunks, and a finished response → a chat reply.

The same events that a Responses client gets are told in the other language: nothing is decided here. A chat reply has
one text: several messages stand in it with an empty line between them, and their citations count from its beginning.
"""

from __future__ import annotations

from typing import Final

from isthmus.protocol.chat import CHAT_ID
from isthmus.protocol.events import CallDelta, Event, ItemEvent, TextDelta
from isthmus.protocol.items import Annotation, CustomToolCall, FunctionCall, Logprob
from isthmus.protocol.json import JsonObject
from isthmus.protocol.response import FinishedResponse, Response

_BETWEEN: Final = "\n\n"


class ChatRenderer:
    def __init__(self, *, include_usage: bool = False, legacy_functions: bool = False) -> None:
        self._include_usage = include_usage
        self._legacy = legacy_functions
        self._base: JsonObject = {}
        self._calls: dict[int, int] = {}
        self._length = 0
        self._message = -1
        self._part = -1
        self._part_start = 0  # where in the text the part begins that speaks

    def render(self, event: Event) -> list[JsonObject]:
        """The chunks that one event becomes: mostly one, often none."""
        if event["type"] == "response.output_text.delta":
            return self._say(event)
        if event["type"] == "response.output_text.annotation.added":
            return [self._chunk({"annotations": [_annotation(event["annotation"], self._part_start)]})]
        if (
            event["type"] == "response.function_call_arguments.delta"
            or event["type"] == "response.custom_tool_call_input.delta"
        ):
            return [self._argue(event)]
        if event["type"] == "response.reasoning_text.delta" or event["type"] == "response.reasoning_summary_text.delta":
            return [self._chunk({"reasoning_content": event["delta"]})]
        if event["type"] == "response.refusal.delta":
            return [self._chunk({"refusal": event["delta"]})]
        if event["type"] == "response.output_item.added":
            return self._open_item(event)
        if event["type"] == "response.created":
            self._base = _base(event["response"], "chat.completion.chunk")
            return [self._chunk({"role": "assistant", "content": "", "refusal": None})]
        if event["type"] == "response.completed" or event["type"] == "response.incomplete":
            return self._finish(event["response"])
        if event["type"] == "response.failed":
            error = event["response"].get("error") or {"code": "cancelled", "message": "the response was cancelled"}
            return [{"error": {**error, "type": "server_error", "param": None}}]
        return []

    def _say(self, event: TextDelta) -> list[JsonObject]:
        chunks: list[JsonObject] = []
        if event["output_index"] != self._message or event["content_index"] != self._part:
            if self._length and event["output_index"] != self._message:
                chunks.append(self._chunk({"content": _BETWEEN}))
                self._length += len(_BETWEEN)
            self._message, self._part = event["output_index"], event["content_index"]
            self._part_start = self._length
        self._length += len(event["delta"])
        chunks.append(self._chunk({"content": event["delta"]}, logprobs=event["logprobs"]))
        return chunks

    def _open_item(self, event: ItemEvent) -> list[JsonObject]:
        item = event["item"]
        if item["type"] != "function_call" and item["type"] != "custom_tool_call":
            return []
        index = self._calls[event["output_index"]] = len(self._calls)
        if self._legacy and item["type"] == "function_call":
            return [self._chunk({"function_call": {"name": item["name"], "arguments": ""}})]
        return [self._chunk({"tool_calls": [{"index": index, **_call(item)}]})]

    def _argue(self, event: CallDelta) -> JsonObject:
        function = event["type"] == "response.function_call_arguments.delta"
        if function and self._legacy:
            return self._chunk({"function_call": {"arguments": event["delta"]}})
        more = {"function": {"arguments": event["delta"]}} if function else {"custom": {"input": event["delta"]}}
        return self._chunk({"tool_calls": [{"index": self._calls[event["output_index"]], **more}]})

    def _finish(self, response: Response) -> list[JsonObject]:
        last = self._chunk({}, _finish_reason(response, self._legacy))
        last["isthmus"] = response.get("isthmus")
        usage = {**self._base, "choices": [], "usage": _usage(response)}
        return [last, usage] if self._include_usage else [last]

    def _chunk(self, delta: JsonObject, reason: str | None = None, logprobs: list[Logprob] | None = None) -> JsonObject:
        told = {"content": logprobs, "refusal": None} if logprobs else None
        choice = {"index": 0, "delta": delta, "logprobs": told, "finish_reason": reason}
        chunk = {**self._base, "choices": [choice]}
        if self._include_usage:
            chunk["usage"] = None
        return chunk


def render_chat_completion(response: FinishedResponse, *, legacy_functions: bool = False) -> JsonObject:
    message: JsonObject = {"role": "assistant", "content": None, "refusal": None}
    text: str | None = None
    thoughts: list[str] = []
    calls: list[JsonObject] = []
    annotations: list[JsonObject] = []
    logprobs: list[Logprob] = []
    for item in response["output"]:
        if item["type"] == "message":
            begun = False
            for part in item["content"]:
                if part["type"] == "refusal":
                    message["refusal"] = (message["refusal"] or "") + part["refusal"]
                    continue
                text = text or ""
                if text and part["text"] and not begun:
                    text += _BETWEEN
                begun = begun or bool(part["text"])
                start, text = len(text), text + part["text"]
                annotations += [_annotation(given, start) for given in part["annotations"]]
                logprobs += part["logprobs"]
        elif item["type"] == "reasoning":
            thoughts += [thought["text"] for thought in (*item.get("content", ()), *item["summary"])]
        elif item["type"] == "function_call" or item["type"] == "custom_tool_call":
            calls.append(_call(item))
    message["content"] = None if calls and not text else text
    if thoughts:
        message["reasoning_content"] = "".join(thoughts)
    if annotations:
        message["annotations"] = annotations
    if calls and legacy_functions and calls[0]["type"] == "function":
        message["function_call"] = calls[0]["function"]
    elif calls:
        message["tool_calls"] = calls
    reason = _finish_reason(response, legacy_functions)
    told = {"content": logprobs, "refusal": None} if logprobs else None
    return {
        **_base(response, "chat.completion"),
        "choices": [{"index": 0, "message": message, "logprobs": told, "finish_reason": reason}],
        "usage": _usage(response),
        "service_tier": response["service_tier"],
        "isthmus": response.get("isthmus"),
    }


def chat_id(response_id: str) -> str:
    """What a response is called as a completion."""
    return CHAT_ID + response_id.removeprefix("resp_")


def _base(response: Response, kind: str) -> JsonObject:
    id, created = chat_id(response["id"]), response["created_at"]
    return {"id": id, "object": kind, "created": created, "model": response["model"]}


def _finish_reason(response: Response, legacy_functions: bool) -> str:
    cut = response["incomplete_details"]
    if cut is not None:
        return "content_filter" if cut["reason"] == "content_filter" else "length"
    if any(item["type"] in ("function_call", "custom_tool_call") for item in response["output"]):
        return "function_call" if legacy_functions else "tool_calls"
    return "stop"


def _usage(response: Response) -> JsonObject | None:
    usage = response["usage"]
    if usage is None:
        return None
    return {
        "prompt_tokens": usage["input_tokens"],
        "completion_tokens": usage["output_tokens"],
        "total_tokens": usage["total_tokens"],
        "prompt_tokens_details": {"cached_tokens": usage["input_tokens_details"]["cached_tokens"]},
        "completion_tokens_details": {"reasoning_tokens": usage["output_tokens_details"]["reasoning_tokens"]},
    }


def _call(item: FunctionCall | CustomToolCall) -> JsonObject:
    if item["type"] == "custom_tool_call":
        return {"id": item["call_id"], "type": "custom", "custom": {"name": item["name"], "input": item["input"]}}
    function = {"name": item["name"], "arguments": item["arguments"]}
    return {"id": item["call_id"], "type": "function", "function": function}


def _annotation(given: Annotation, start: int) -> JsonObject:
    """A citation as a chat client reads it; `start` is where its part begins in the one text that a chat reply has."""
    if given.get("type") != "url_citation":
        return given
    inner = {name: value for name, value in given.items() if name != "type"}
    for name in ("start_index", "end_index"):
        if isinstance(inner.get(name), int):
            inner[name] += start
    return {"type": "url_citation", "url_citation": inner}
