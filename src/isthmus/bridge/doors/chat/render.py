"""Responses events → Chat Completions chunks, and a finished response → a chat reply.

The same events that a Responses client gets are told in the other language: nothing is decided here.
"""

from __future__ import annotations

from typing import Any, Final

from isthmus.protocol.json import JsonObject

_LENGTHS: Final = {"max_output_tokens": "length", "content_filter": "content_filter"}


class ChatRenderer:
    """Turns the events of one response into chunks, in order."""

    __slots__ = ("_base", "_calls", "_include_usage", "_legacy", "_started")

    def __init__(self, *, include_usage: bool = False, legacy_functions: bool = False) -> None:
        self._include_usage = include_usage
        self._legacy = legacy_functions
        self._base: JsonObject = {}
        self._calls: dict[int, int] = {}
        self._started = False

    def render(self, event: JsonObject) -> list[JsonObject]:
        """The chunks that one event becomes: mostly one, often none."""
        match event["type"]:
            case "response.output_text.delta":
                delta: JsonObject = {"content": event["delta"]}
                return [self._chunk(delta, logprobs=event["logprobs"] or None)]
            case "response.function_call_arguments.delta" | "response.custom_tool_call_input.delta":
                return [self._more_call(event)]
            case "response.reasoning_text.delta" | "response.reasoning_summary_text.delta":
                return [self._chunk({"reasoning_content": event["delta"]})]
            case "response.refusal.delta":
                return [self._chunk({"refusal": event["delta"]})]
            case "response.created":
                return self._begin(event["response"])
            case "response.output_item.added":
                return self._open_item(event)
            case "response.completed" | "response.incomplete":
                return self._finish(event["response"])
            case "response.failed":
                return [{"error": _error(event["response"])}]
            case _:
                return []

    def _begin(self, response: JsonObject) -> list[JsonObject]:
        self._base = {
            "id": chat_id(response["id"]),
            "object": "chat.completion.chunk",
            "created": response["created_at"],
            "model": response["model"],
        }
        return [self._chunk({"role": "assistant", "content": "", "refusal": None})]

    def _open_item(self, event: JsonObject) -> list[JsonObject]:
        item = event["item"]
        if item["type"] not in ("function_call", "custom_tool_call"):
            return []
        index = self._calls[event["output_index"]] = len(self._calls)
        if self._legacy and item["type"] == "function_call":
            return [self._chunk({"function_call": {"name": item["name"], "arguments": ""}})]
        return [self._chunk({"tool_calls": [{"index": index, **_call(item)}]})]

    def _more_call(self, event: JsonObject) -> JsonObject:
        index = self._calls[event["output_index"]]
        if event["type"] == "response.custom_tool_call_input.delta":
            return self._chunk({"tool_calls": [{"index": index, "custom": {"input": event["delta"]}}]})
        if self._legacy:
            return self._chunk({"function_call": {"arguments": event["delta"]}})
        return self._chunk({"tool_calls": [{"index": index, "function": {"arguments": event["delta"]}}]})

    def _finish(self, response: JsonObject) -> list[JsonObject]:
        last = self._chunk({}, finish_reason=finish_reason(response, self._legacy))
        last["isthmus"] = response.get("isthmus")
        if not self._include_usage:
            return [last]
        return [last, {**self._base, "choices": [], "usage": chat_usage(response)}]

    def _chunk(self, delta: JsonObject, *, finish_reason: str | None = None, logprobs: Any = None) -> JsonObject:
        choice: JsonObject = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}
        if logprobs:
            choice["logprobs"] = {"content": logprobs, "refusal": None}
        chunk = {**self._base, "choices": [choice]}
        if self._include_usage:
            chunk["usage"] = None
        return chunk


def render_chat_completion(response: JsonObject, *, legacy_functions: bool = False) -> JsonObject:
    """A finished response as one chat reply."""
    message: JsonObject = {"role": "assistant", "content": None, "refusal": None}
    texts: list[str] = []
    thoughts: list[str] = []
    calls: list[JsonObject] = []
    annotations: list[JsonObject] = []
    logprobs: list[JsonObject] = []
    for item in response["output"]:
        match item["type"]:
            case "message":
                for part in item["content"]:
                    if part["type"] == "refusal":
                        message["refusal"] = (message["refusal"] or "") + part["refusal"]
                    else:
                        texts.append(part["text"])
                        annotations += [_annotation(given) for given in part["annotations"]]
                        logprobs += part["logprobs"]
            case "reasoning":
                thoughts += [part["text"] for part in (*item.get("content", ()), *item["summary"])]
            case "function_call" | "custom_tool_call":
                calls.append(_call(item))
    if texts and not (calls and not any(texts)):
        message["content"] = "".join(texts)
    if thoughts:
        message["reasoning_content"] = "".join(thoughts)
    if annotations:
        message["annotations"] = annotations
    if calls and legacy_functions and calls[0]["type"] == "function":
        message["function_call"] = calls[0]["function"]
    elif calls:
        message["tool_calls"] = calls
    return {
        "id": chat_id(response["id"]),
        "object": "chat.completion",
        "created": response["created_at"],
        "model": response["model"],
        "choices": [
            {
                "index": 0,
                "message": message,
                "logprobs": {"content": logprobs, "refusal": None} if logprobs else None,
                "finish_reason": finish_reason(response, legacy_functions),
            }
        ],
        "usage": chat_usage(response),
        "service_tier": response["service_tier"],
        "isthmus": response.get("isthmus"),
    }


def chat_id(response_id: str) -> str:
    return "chatcmpl-" + response_id.removeprefix("resp_")


def finish_reason(response: JsonObject, legacy_functions: bool = False) -> str:
    if response["status"] == "incomplete":
        return _LENGTHS.get(response["incomplete_details"]["reason"], "length")
    called = any(item["type"] in ("function_call", "custom_tool_call") for item in response["output"])
    if not called:
        return "stop"
    return "function_call" if legacy_functions else "tool_calls"


def chat_usage(response: JsonObject) -> JsonObject | None:
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


def _call(item: JsonObject) -> JsonObject:
    if item["type"] == "custom_tool_call":
        return {"id": item["call_id"], "type": "custom", "custom": {"name": item["name"], "input": item["input"]}}
    function = {"name": item["name"], "arguments": item["arguments"]}
    return {"id": item["call_id"], "type": "function", "function": function}


def _annotation(given: JsonObject) -> JsonObject:
    if given.get("type") != "url_citation":
        return given
    return {"type": "url_citation", "url_citation": {name: value for name, value in given.items() if name != "type"}}


def _error(response: JsonObject) -> JsonObject:
    error = response.get("error") or {"code": "cancelled", "message": "the response was cancelled"}
    return {"message": error["message"], "type": "server_error", "param": None, "code": error["code"]}
