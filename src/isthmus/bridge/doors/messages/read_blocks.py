"""Content blocks of a user, a system or a tool → the parts of Responses items, each with the path of its block.

In: the `content` of a turn or of a tool's result. Out: parts. A block that has no part of its own becomes text, with a
decision; one that only the vendor can resolve (a file id) is refused. A mark for the prompt cache stays on its part.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from isthmus.bridge.diagnostics import Action, CompatibilityDecision, decide_item
from isthmus.bridge.history.parts import BREAKPOINT
from isthmus.errors import BRIDGE_REQUEST_UNSUPPORTED_INPUT_ITEM, RequestRefused
from isthmus.protocol.json import JsonObject

MARK: Final[JsonObject] = {"mode": "explicit"}
"""A breakpoint of the prompt cache, as Responses spells it."""
_PDF: Final = "application/pdf"


class Placed(NamedTuple):
    """A part, and where its block stands in the request."""

    part: JsonObject
    path: str


class BlockReader:
    def __init__(self) -> None:
        self.decisions: list[CompatibilityDecision] = []
        self.ttl = ""
        """How long the marks live for the prompt cache: the longest that any of them asks for."""

    def read(self, content: Any, path: str) -> list[Placed]:
        """All parts of `content`, which stands at `path`."""
        if content is None or content == "":
            return []
        if isinstance(content, str):
            return [Placed(_text(content), path)]
        placed: list[Placed] = []
        for index, block in enumerate(blocks_of(content, path)):
            placed += self._read(block, f"{path}[{index}]")
        return placed

    def mark(self, block: JsonObject, placed: list[Placed], path: str) -> list[Placed]:
        """The parts, with the block's own mark on the last of them."""
        given = block.get("cache_control")
        if not isinstance(given, dict):
            return placed
        if given.get("ttl") == "1h":
            self.ttl = "1h"
        if not placed:
            self.pass_over(f"{path}.cache_control", "there is nothing here that could be cached")
            return placed
        last = placed[-1]
        return [*placed[:-1], Placed({**last.part, BREAKPOINT: MARK}, last.path)]

    def decide(self, path: str, action: Action, reason: str) -> None:
        self.decisions.append(decide_item(path, action, reason))

    def pass_over(self, path: str, reason: str) -> None:
        """For what no answer depends on."""
        self.decisions.append(decide_item(path, "ignored", reason, harmless=True))

    def _read(self, block: JsonObject, path: str) -> list[Placed]:
        if (block.get("citations") or {}) not in ({}, [], {"enabled": False}):
            self.decide(f"{path}.citations", "ignored", "nothing here makes citations of what it was given")
        parts = self._parts(block, path)
        return self.mark(block, [Placed(part, path) for part in parts], path)

    def _parts(self, block: JsonObject, path: str) -> list[JsonObject]:
        match block.get("type"):
            case "text":
                return [_text(text_in(block, "text", path))]
            case "image":
                return [_image(block, path)]
            case "document":
                return self._document(block, path)
            case "search_result":
                self.decide(path, "degraded", "search results have no form of their own; it is sent as text")
                found = [part["text"] for part in _texts(block.get("content"), f"{path}.content")]
                head = " ".join(str(block[name]) for name in ("title", "source") if block.get(name))
                return [_text("\n".join([f"[search result: {head}]", *found]))]
            case "tool_reference":
                name = text_in(block, "tool_name", path)
                self.decide(path, "degraded", "references to tools have no form of their own; it is sent as text")
                return [_text(f"loaded: {name}")]
            case kind:
                text = block.get("text")
                kept = isinstance(text, str) and bool(text)
                reason = f"content block type `{kind}` is not known{'; its text was kept' if kept else ''}"
                self.decide(path, "degraded" if kept else "ignored", reason)
                return [_text(str(text))] if kept else []

    def _document(self, block: JsonObject, path: str) -> list[JsonObject]:
        source, title = _source(block, path), block.get("title")
        named = title if isinstance(title, str) and title else ""
        about = block.get("context")
        head = [_text(f"[about the document {named or 'that follows'}]\n{about}")] if isinstance(about, str) else []
        match source.get("type"):
            case "base64":
                kind, data = source.get("media_type") or _PDF, text_in(source, "data", f"{path}.source")
                return [
                    *head,
                    {"type": "input_file", "filename": named or "document.pdf", "file_data": _url(kind, data)},
                ]
            case "url":
                url = text_in(source, "url", f"{path}.source")
                return [*head, {"type": "input_file", **({"filename": named} if named else {}), "file_url": url}]
            case "text":
                return [*head, _text(f"[document{f' {named}' if named else ''}]\n{source.get('data') or ''}")]
            case "content":
                inside = self.read(source.get("content"), f"{path}.source.content")
                return [*head, _text(f"[document{f' {named}' if named else ''}]"), *(one.part for one in inside)]
        raise _unknown_source(source, path)


def blocks_of(content: Any, path: str) -> Sequence[JsonObject]:
    if not isinstance(content, list):
        raise wrong_type(path, "a string or a list of content blocks")
    for index, block in enumerate(content):
        if not isinstance(block, dict):
            raise wrong_type(f"{path}[{index}]", "an object")
    return content


def text_in(holder: JsonObject, name: str, path: str) -> str:
    value = holder.get(name)
    if not isinstance(value, str):
        if value is None:
            raise RequestRefused(
                f"`{path}.{name}` is missing", code="missing_required_parameter", param=f"{path}.{name}"
            )
        raise wrong_type(f"{path}.{name}", "a string")
    return value


def wrong_type(path: str, wanted: str) -> RequestRefused:
    return RequestRefused(f"`{path}` must be {wanted}", code="invalid_type", param=path)


def _text(text: str) -> JsonObject:
    return {"type": "input_text", "text": text}


def _texts(content: Any, path: str) -> list[JsonObject]:
    if isinstance(content, str):
        return [_text(content)]
    return [block for block in blocks_of(content or [], path) if isinstance(block.get("text"), str)]


def _image(block: JsonObject, path: str) -> JsonObject:
    source = _source(block, path)
    match source.get("type"):
        case "base64":
            data = text_in(source, "data", f"{path}.source")
            return {"type": "input_image", "image_url": _url(str(source.get("media_type") or "image/png"), data)}
        case "url":
            return {"type": "input_image", "image_url": text_in(source, "url", f"{path}.source")}
    raise _unknown_source(source, path)


def _source(block: JsonObject, path: str) -> JsonObject:
    source = block.get("source")
    if not isinstance(source, dict):
        raise wrong_type(f"{path}.source", "an object")
    return source


def _unknown_source(source: JsonObject, path: str) -> RequestRefused:
    kind = source.get("type")
    reason = "there are no stored files here" if kind == "file" else f"`{kind}` is no source that is known here"
    return RequestRefused(
        f"`{path}.source`: {reason}; send the content itself as `base64`",
        code=BRIDGE_REQUEST_UNSUPPORTED_INPUT_ITEM,
        param=f"{path}.source",
    )


def _url(media_type: str, data: str) -> str:
    return f"data:{media_type};base64,{data}"
