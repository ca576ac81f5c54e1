"""The rules of a Messages stream, as the vendor's clients rely on them; and a client that reads one over HTTP."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

Json = dict[str, Any]
_DELTAS = {
    "text": {"text_delta", "citations_delta"},
    "thinking": {"thinking_delta", "signature_delta"},
    "tool_use": {"input_json_delta"},
    "server_tool_use": {"input_json_delta"},
    "web_search_tool_result": set[str](),
}
_COUNTS = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")


def check_frames(frames: Sequence[Json], *, failed: bool = False) -> None:
    """One message, blocks one after the other and counted from 0, deltas of the block's own kind, one end."""
    told = [frame for frame in frames if frame["type"] != "ping"]
    assert told[0]["type"] == "message_start", told[:1]
    assert all(isinstance(told[0]["message"]["usage"][name], int) for name in _COUNTS)
    ends = [frame["type"] for frame in told[-1:]] if failed else [frame["type"] for frame in told[-2:]]
    assert ends == (["error"] if failed else ["message_delta", "message_stop"]), ends
    count, kind, signed = 0, "", 0
    for frame in told[1 : -1 if failed else -2]:
        match frame["type"]:
            case "content_block_start":
                assert not kind, "two blocks are open"
                assert frame["index"] == count, "blocks are counted without a gap"
                kind, signed = frame["content_block"]["type"], 0
            case "content_block_delta":
                assert kind, "a delta outside of a block"
                assert frame["index"] == count
                assert frame["delta"]["type"] in _DELTAS[kind], (kind, frame["delta"]["type"])
                assert not signed, "a signature is the last of its block"
                signed += frame["delta"]["type"] == "signature_delta"
            case "content_block_stop":
                assert kind, "a block ends that is not open"
                assert frame["index"] == count
                assert kind != "thinking" or signed == 1, "thinking without its signature"
                kind, count = "", count + 1
            case other:
                raise AssertionError(f"`{other}` inside of a message")
    if not failed:
        assert not kind, "a block is left open"
        delta, usage = told[-2]["delta"], told[-2]["usage"]
        assert delta["stop_reason"] is not None
        assert all(isinstance(usage[name], int) for name in _COUNTS)
