"""Anthropic as a server that forgives nothing: the rules of its Messages API, each with the 400 for its breach.

The rules are those that its documentation and the issues of its users tell (gathered on 2026-11-15 and -16).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

from isthmus.testing import Step
from isthmus.testing.requests import RecordedRequest
from speaking_messages import claude_error, sign

Json = dict[str, Any]
FIELDS = {
    *("model", "max_tokens", "messages", "system", "tools", "tool_choice", "thinking", "output_config", "stream"),
    *("metadata", "stop_sequences", "service_tier", "temperature", "top_p", "top_k"),
}
BLOCKS = {
    "user": {"text", "image", "document", "tool_result"},
    "assistant": {"text", "thinking", "redacted_thinking", "tool_use"},
    "system": {"text"},
}
SCHEMA_REFUSED = {"minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems", "multipleOf", "uniqueItems"}


class Kind(NamedTuple):
    """What a model takes."""

    thinking: tuple[str, ...]
    efforts: tuple[str, ...] = ()
    forced: bool = False
    sampling: bool = False
    late_system: bool = False


ALL = ("low", "medium", "high", "xhigh", "max")
KINDS = [
    ("claude-*-4-5*", Kind(("enabled", "disabled"), forced=True, sampling=True)),
    ("claude-*-4-6*", Kind(("adaptive", "disabled"), ("low", "medium", "high", "max"), True, True)),
    ("claude-opus-4-8", Kind(("adaptive",), ALL, forced=True, late_system=True)),
    ("claude-opus-5", Kind(("adaptive", "disabled"), ALL, forced=True, late_system=True)),
    ("claude-sonnet-5", Kind(("adaptive", "disabled"), ALL, forced=True)),
    ("*", Kind(("adaptive",), ALL, late_system=True)),
]


class Refused(Exception):
    pass


def refused_by_anthropic(body: Json, headers: Mapping[str, str] | None = None) -> str | None:
    """What the server says to a request that it does not take; `None`: it takes it."""
    try:
        if headers is not None:
            check(headers.get("x-api-key"), "x-api-key header is required")
            check(headers.get("anthropic-version") == "2023-06-01", "anthropic-version: header is required")
        _check_body(body)
    except Refused as refused:
        return str(refused)
    return None


def strictly(answer: Step) -> Step:
    """A step that answers like the vendor: 400 where it refuses the request, `answer` otherwise."""

    def handle(request: RecordedRequest) -> Step:
        why = refused_by_anthropic(request.json, {name.lower(): value for name, value in request.headers.items()})
        return answer if why is None else claude_error(400, "invalid_request_error", why)

    return handle


def check(held: Any, words: str) -> None:
    if not held:
        raise Refused(words)


def _check_body(body: Json) -> None:
    for name in body:
        check(name in FIELDS, f"{name}: Extra inputs are not permitted")
    kind = next(kind for glob, kind in KINDS if fnmatchcase(body.get("model", ""), glob))
    most = body.get("max_tokens")
    check(isinstance(most, int) and most > 0, "max_tokens: Field required")
    check(body.get("messages"), "messages: at least one message is required")
    thinks = _check_thinking(body, kind)
    _check_sampling(body, kind, thinks)
    _check_tools(body, kind, thinks)
    _check_format(body, kind)
    for stop in body.get("stop_sequences", ()):
        check(stop.strip(), "stop_sequences: each stop sequence must contain non-whitespace")
    check(set(body.get("metadata", {})) <= {"user_id"}, "metadata: Extra inputs are not permitted")
    check(body.get("service_tier", "auto") in ("auto", "standard_only"), "service_tier: Input should be 'auto'")
    _check_order(body["messages"], kind)
    for message in body["messages"]:
        for block in message["content"]:
            _check_block(block, message["role"])
    _check_calls(body["messages"])
    if body.get("thinking", {}).get("type") == "enabled":
        _check_thoughts(body["messages"])
    _check_marks(body)


def _check_thinking(body: Json, kind: Kind) -> bool:
    thinking = body.get("thinking")
    if thinking is None:
        return kind.thinking == ("adaptive",) and not kind.forced
    mode = thinking.get("type")
    check(mode in kind.thinking, f'"thinking.type.{mode}" is not supported for this model.')
    allowed = {"enabled": {"type", "budget_tokens", "display"}, "adaptive": {"type", "display"}, "disabled": {"type"}}
    for name in thinking:
        check(name in allowed[mode], f"thinking.{mode}.{name}: Extra inputs are not permitted")
    if mode == "enabled":
        check(thinking.get("budget_tokens", 0) >= 1024, "thinking.budget_tokens: Input should be >= 1024")
        check(thinking["budget_tokens"] < body["max_tokens"], "`max_tokens` must be greater than `budget_tokens`")
    return bool(mode != "disabled")


def _check_sampling(body: Json, kind: Kind, thinks: bool) -> None:
    sampling = [name for name in ("temperature", "top_p", "top_k") if name in body]
    for name in sampling:
        check(kind.sampling, f"`{name}` is not supported on this model")
        check(not thinks, f"`{name}` may not be set when thinking is enabled")
    check(len(sampling) < 2, "`temperature` and `top_p` cannot both be specified for this model")
    check(0 <= body.get("temperature", 1) <= 1, "temperature: range: 0..1")


def _check_tools(body: Json, kind: Kind, thinks: bool) -> None:
    tools, choice = body.get("tools", []), body.get("tool_choice")
    names = [tool["name"] for tool in tools]
    check(len(set(names)) == len(names), "tools: Tool names must be unique.")
    for tool in tools:
        check(re.fullmatch("[a-zA-Z0-9_-]{1,128}", tool["name"]), "tools.0.name: String should match pattern")
        if "type" not in tool:
            schema = tool.get("input_schema", {})
            check(schema.get("type") == "object", "tools.0.input_schema.type: Field required")
            check(not {"oneOf", "anyOf", "allOf"} & set(schema), "input_schema does not support oneOf at the top level")
    used = any(block["type"] in ("tool_use", "tool_result") for block in _blocks(body["messages"]))
    check(tools or not used, "Requests which have tool_use or tool_result blocks must define tools")
    if choice is None:
        return
    check(tools, "tool_choice: may only be specified while providing tools.")
    fields = {"type", "disable_parallel_tool_use"} if choice["type"] != "none" else {"type"}
    fields |= {"name"} if choice["type"] == "tool" else set()
    check(set(choice) <= fields, "tool_choice: Extra inputs are not permitted")
    if choice["type"] in ("any", "tool"):
        check(kind.forced, "tool_choice: forced tool use is not supported for this model")
        check(not thinks, "Thinking may not be enabled when tool_choice forces tool use.")
    check(choice["type"] != "tool" or choice["name"] in names, "tool_choice: Tool not found in provided tools")


def _check_format(body: Json, kind: Kind) -> None:
    config = body.get("output_config", {})
    check(set(config) <= {"effort", "format"}, "output_config: Extra inputs are not permitted")
    check(
        "effort" not in config or config["effort"] in kind.efforts, "This model does not support the effort parameter."
    )
    form = config.get("format")
    if form is not None:
        check(set(form) == {"type", "schema"} and form["type"] == "json_schema", "output_config.format: Extra inputs")
        for schema in _schemas(form["schema"]):
            if schema.get("type") == "object":
                check(schema.get("additionalProperties") is False, "'additionalProperties' must be set to false")
            check(not SCHEMA_REFUSED & set(schema), "output_config.format.schema: keywords are not supported")


def _schemas(schema: Any) -> Iterator[Json]:
    if isinstance(schema, dict):
        yield schema
        for value in schema.get("properties", {}).values():
            yield from _schemas(value)
        yield from _schemas(schema.get("items"))
        for one in schema.get("anyOf", ()):
            yield from _schemas(one)


def _check_order(messages: list[Json], kind: Kind) -> None:
    check(messages[0]["role"] == "user", "messages: first message must use the user role")
    before = ""
    for message in messages:
        role = message["role"]
        check(role in BLOCKS, f"messages: Unexpected role '{role}'")
        check(role != before, "messages: roles must alternate")
        if role == "system":
            check(kind.late_system, "role 'system' is not supported on this model")
            check(before == "user", "messages: a system message must follow a user turn")
        check(isinstance(message["content"], list) and message["content"], "messages: content cannot be empty")
        before = role
    check(before != "assistant", "This model does not support assistant message prefill.")


def _check_block(block: Json, role: str) -> None:
    kind = block["type"]
    check(kind in BLOCKS[role], f"messages: `{kind}` is not permitted in {role} messages")
    check("cache_control" not in block or kind not in ("thinking", "redacted_thinking"), "thinking: no cache_control")
    match kind:
        case "text":
            check(block["text"].strip(), "messages: text content blocks must contain non-whitespace text")
        case "thinking":
            check(block["signature"] == sign(block["thinking"]), "Invalid `signature` in `thinking` block")
        case "redacted_thinking":
            check(block["data"] == "b3BhcXVl", "Invalid `data` in `redacted_thinking` block")
        case "image" | "document":
            _check_source(block["source"], kind)
        case "tool_use":
            check(re.fullmatch("[a-zA-Z0-9_-]+", block["id"]), "tool_use.id: String should match pattern")
            check(isinstance(block["input"], dict), "tool_use.input: Input should be a valid dictionary")
        case "tool_result":
            for one in block["content"] if isinstance(block.get("content"), list) else ():
                _check_block(one, "user")


def _check_source(source: Json, kind: str) -> None:
    types = {"image": ("image/png", "image/jpeg", "image/gif", "image/webp"), "document": ("application/pdf",)}[kind]
    match source["type"]:
        case "base64":
            check(source["media_type"] in types and source["data"], f"{kind}.source.base64.media_type: Input should be")
        case "text":
            check(kind == "document" and source["media_type"] == "text/plain", f"{kind}.source: Input should be")
        case "url":
            check(source["url"].startswith("https://"), "Only HTTPS URLs are supported.")
        case other:
            raise Refused(f"{kind}.source: Input tag '{other}' found")


def _check_calls(messages: list[Json]) -> None:
    seen: set[str] = set()
    for index, message in enumerate(messages):
        calls = [block["id"] for block in message["content"] if block["type"] == "tool_use"]
        check(not seen & set(calls) and len(set(calls)) == len(calls), "messages: `tool_use` ids must be unique")
        seen |= set(calls)
        following = messages[index + 1]["content"] if index + 1 < len(messages) else []
        first = [block["tool_use_id"] for block in following[: len(calls)] if block["type"] == "tool_result"]
        check(first == calls, "`tool_use` ids were found without `tool_result` blocks immediately after")
        answers = [block["tool_use_id"] for block in message["content"] if block["type"] == "tool_result"]
        known = [block.get("id") for block in messages[index - 1]["content"]] if index else []
        check(set(answers) <= set(known), "unexpected `tool_use_id` found in `tool_result` blocks")
        thoughts = ("thinking", "redacted_thinking")
        check(message["content"][-1]["type"] not in thoughts, "The final block may not be `thinking`.")


def _check_thoughts(messages: list[Json]) -> None:
    last = [message for message in messages if message["role"] == "assistant"][-1:]
    for message in last:
        if any(block["type"] == "tool_use" for block in message["content"]):
            first = message["content"][0]["type"]
            check(first in ("thinking", "redacted_thinking"), f"Expected `thinking`, but found `{first}`.")


def _check_marks(body: Json) -> None:
    blocks = [*body.get("tools", ()), *body.get("system", ()), *_blocks(body["messages"])]
    marks = [block["cache_control"] for block in blocks if "cache_control" in block]
    check(len(marks) <= 4, "A maximum of 4 blocks with cache_control may be provided.")
    lives = [mark.get("ttl", "5m") for mark in marks]
    check(lives == sorted(lives), "a ttl='1h' cache_control block must not come after a ttl='5m' one")
    for block in body.get("system", ()):
        check(block["text"].strip(), "system: text content blocks must be non-empty")


def _blocks(messages: list[Json]) -> Iterator[Json]:
    for message in messages:
        yield from message["content"]
