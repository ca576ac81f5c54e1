"""What an MCP server says, in the words of the Responses API.

In: the SDK's tools, results and errors. Out: entries of `mcp_list_tools`, a `Ran`, an `error` of an item. Worth
knowing: all of it passes a scrubber that knows what was shown to the server; one that repeats it tells nobody.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import msgspec

from isthmus.bridge.tools.managed import failure_words
from isthmus.bridge.types.managed import Ran
from isthmus.errors import ConfigError, IsthmusError
from isthmus.protocol.json import JsonObject
from isthmus.scrub import Scrub, unscrubbed
from isthmus.tools.mcp_session import NotConnected, innermost_reason

MARK: Final = "isthmus"
"""Where the data of an error hold what our own wire knows of it (see `over_wire`)."""
INVALID: Final = -32600
"""A request that nobody may make."""
_CLOSED: Final = -32000
_NO_TOOL: Final = -32602
_MAX_NAME: Final = 128
"""Characters of a tool's name; the specification asks for no more (modelcontextprotocol.io, 2026-11-17)."""


def list_tools(found: Iterable[Any], scrub: Scrub) -> tuple[JsonObject, ...]:
    """A server's tools as the API tells of them; one that nobody could call costs only itself."""
    tools: dict[str, JsonObject] = {}
    for one in found:
        if one.name and len(one.name) <= _MAX_NAME and one.name not in tools:
            tools[one.name] = _clean(_entry(one), scrub)
    return tuple(tools.values())


def _entry(one: Any) -> JsonObject:
    entry: JsonObject = {"name": one.name, "input_schema": {"type": "object", **(one.input_schema or {})}}
    if one.description:
        entry["description"] = one.description
    hints = one.annotations.model_dump(by_alias=True, exclude_none=True, mode="json") if one.annotations else {}
    return {**entry, "annotations": hints or None}


def _clean(entry: JsonObject, scrub: Scrub) -> JsonObject:
    text = msgspec.json.encode(entry).decode()
    cleaned = scrub(text)
    return entry if cleaned == text else msgspec.json.decode(cleaned)


def tell_result(answer: Any, scrub: Scrub) -> Ran:
    """What came of a call: words for the item, and for the model what else it can look at."""
    parts = list(_parts(answer, scrub))
    words = "\n".join(part["text"] for part in parts if part["type"] == "input_text")
    if answer.is_error:
        content = [{"type": "text", "text": part["text"]} for part in parts if part["type"] == "input_text"]
        error = {"type": "mcp_tool_execution_error", "content": content}
        return Ran(failure_words(error), {"error": error, "output": None}, failed=True)
    pictures = any(part["type"] == "input_image" for part in parts)
    if pictures:
        words = "\n".join(part.get("text") or "[an image]" for part in parts)
    return Ran(parts if pictures else words, {"output": words, "error": None})


def tell_failure(error: JsonObject, scrub: Scrub = unscrubbed) -> Ran:
    """One that did not come to a result."""
    error = {**error, "message": scrub(error["message"])}
    return Ran(failure_words(error), {"error": error, "output": None}, failed=True)


def shape_error(error: BaseException) -> JsonObject:
    """`http_error` where the way there failed, `mcp_protocol_error` where the server refused."""
    from mcp.shared.exceptions import MCPError

    while isinstance(error, BaseExceptionGroup) and error.exceptions:
        error = error.exceptions[0]
    if isinstance(error, MCPError):
        known = error.data.get(MARK) if isinstance(error.data, dict) else None
        if isinstance(known, dict):
            return {"type": "http_error", "code": known.get("status") or 502, "message": error.message}
        return {"type": "mcp_protocol_error", "code": error.code, "message": error.message}
    if isinstance(error, IsthmusError):
        code = 504 if isinstance(error, ConfigError) else 503  # it did not answer; or there is no room for it
        return {"type": "http_error", "code": code, "message": error.message}
    if isinstance(error, NotConnected):
        return {"type": "mcp_protocol_error", "code": _CLOSED, "message": str(error)}
    return {"type": "mcp_protocol_error", "code": _CLOSED, "message": innermost_reason(error)}


def too_late(seconds: float) -> JsonObject:
    return {"type": "http_error", "code": 504, "message": f"it did not answer within {seconds:g} s (`timeout`)"}


def no_such_tool(name: str, label: str) -> JsonObject:
    words = f"the MCP server `{label}` has no tool `{name}` that may be called"
    return {"type": "mcp_protocol_error", "code": _NO_TOOL, "message": words}


def is_forgotten(error: BaseException) -> bool:
    """Whether the server does not know our session any more: then nothing was done, and a new one may be asked."""
    data = getattr(error, "data", None)
    known = data.get(MARK) if isinstance(data, dict) else None
    return isinstance(known, dict) and known.get("status") == 404


def _parts(answer: Any, scrub: Scrub) -> Iterator[JsonObject]:
    content: Sequence[Any] = answer.content
    if not content and answer.structured_content is not None:
        text = msgspec.json.encode(answer.structured_content).decode()
        yield {"type": "input_text", "text": scrub(text)}
    for block in content:
        if block.type == "image":
            yield {"type": "input_image", "image_url": f"data:{block.mime_type};base64,{block.data}", "detail": "auto"}
        else:
            yield {"type": "input_text", "text": scrub(_words(block))}


def _words(block: Any) -> str:
    match block.type:
        case "text":
            return str(block.text)
        case "audio":
            return f"[a recording, {block.mime_type}]"
        case "resource_link":
            return f"[{block.name}]({block.uri})"
        case "resource":
            text = getattr(block.resource, "text", None)
            return str(text) if text is not None else f"[a file: {block.resource.uri}]"
    return f"[content of the type {block.type}]"
