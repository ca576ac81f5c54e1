"""The frames of a Messages stream → the message that they make together."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from isthmus.protocol.json import NOT_JSON, JsonObject, read_json

_GROWS: Final = {"text_delta": "text", "thinking_delta": "thinking", "input_json_delta": "partial_json"}


def fold_message(frames: Iterable[JsonObject]) -> JsonObject:
    """Of a stream that did not fail."""
    message: JsonObject = {}
    pieces: list[list[str]] = []
    for frame in frames:
        match frame["type"]:
            case "message_start":
                message = {**frame["message"], "content": []}
            case "content_block_start":
                message["content"].append(dict(frame["content_block"]))
                pieces.append([])
            case "content_block_delta":
                _grow(message["content"][frame["index"]], pieces[frame["index"]], frame["delta"])
            case "content_block_stop":
                _close(message["content"][frame["index"]], pieces[frame["index"]])
            case "message_delta":
                message |= {**frame["delta"], "usage": frame["usage"]}
                if "isthmus" in frame:
                    message["isthmus"] = frame["isthmus"]
    return message


def _grow(block: JsonObject, pieces: list[str], delta: JsonObject) -> None:
    match delta["type"]:
        case "signature_delta":
            block["signature"] = delta["signature"]
        case "citations_delta":
            block["citations"] = [*(block.get("citations") or ()), delta["citation"]]
        case kind:
            pieces.append(delta[_GROWS[kind]])


def _close(block: JsonObject, pieces: list[str]) -> None:
    text = "".join(pieces)
    if block["type"] in ("tool_use", "server_tool_use"):
        block["input"] = _input(text)
    elif block["type"] in ("text", "thinking"):
        block[block["type"]] = text


def _input(text: str) -> Any:
    """Arguments that were cut off are no object; the client sees them as they are, and refuses the call."""
    found = read_json(text) if text.strip() else {}
    return {"_raw": text} if found is NOT_JSON or not isinstance(found, dict) else found
