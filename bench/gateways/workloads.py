"""What is asked of every gateway: the one list of workloads.

In: a door, as clients speak. Out: the bytes of a request for each workload, and whether an answer to it is right: what
the model said, whole and once, in the words of that door.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, Literal

from bench.gateways.answers import Door, is_right
from bench.gateways.upstream import TOOL, Told, said
from bench.workloads import codex_request

Json = dict[str, Any]
Part = Literal["plain", "tool", "schema", "codex", "chain"]

CHAIN: Final = 200
"""Turns behind a request that continues a chain."""
SCHEMA: Final = {
    "type": "object",
    "properties": {
        "city": {"type": "string"},
        "people": {"type": "integer"},
        "tags": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["city", "people", "tags"],
    "additionalProperties": False,
}
_PARAMETERS: Final = {"type": "object", "properties": {"cmd": {"type": "string"}}, "required": ["cmd"]}


@dataclass(frozen=True, slots=True)
class Workload:
    name: str
    door: Door
    model: str
    """What the upstream tells, as it reads it."""
    stream: bool = False
    part: Part = "plain"
    size: int = 0
    """Bytes of a Codex request."""

    @property
    def told(self) -> Told:
        return Told.by(self.model)

    def body(self, model: str, extra: Json | None = None, *, door: Door | None = None, after: str = "") -> bytes:
        """`model`: before the name that the upstream reads; `after`: the response that this one continues."""
        built = _BODIES[door or self.door](self)
        built |= {"model": model + self.model, "stream": self.stream, **(extra or {})}
        if after:
            built["previous_response_id"] = after
        return json.dumps(built, separators=(",", ":")).encode()

    def right(self, answer: bytes, *, door: Door | None = None) -> str:
        """Nothing, or what is wrong with a whole answer."""
        return is_right(
            answer, door or self.door, self.stream, self.part == "tool", said(self.told.kind, self.told.deltas)
        )


WORKLOADS: Final = (
    Workload("small, whole", "responses", "text-10-0"),
    Workload("200 deltas, coalesced", "responses", "text-200-0", stream=True),
    Workload("200 deltas, 2 ms apart", "responses", "text-200-2", stream=True),
    Workload("tool call in 200 deltas", "responses", "call-200-0", stream=True, part="tool"),
    Workload("tool call in 200 deltas, 2 ms apart", "responses", "call-200-2", stream=True, part="tool"),
    Workload("json_schema, whole", "responses", "json-1-0", part="schema"),
    Workload("Codex request 38 kB, whole", "responses", "text-10-0", part="codex", size=41_000),
    Workload("Codex request 500 kB, whole", "responses", "text-10-0", part="codex", size=500_000),
    Workload(f"turn {CHAIN + 1} of a chain, whole", "responses", "text-10-0", part="chain"),
    Workload("Chat, small, whole", "chat", "text-10-0"),
    Workload("Chat, 200 deltas, coalesced", "chat", "text-200-0", stream=True),
    Workload("Messages, small, whole", "messages", "text-10-0"),
    Workload("Messages, 200 deltas, coalesced", "messages", "text-200-0", stream=True),
    Workload("Messages, 200 deltas, 2 ms apart", "messages", "text-200-2", stream=True),
    Workload("WebSocket, small", "websocket", "text-10-0", stream=True),
    Workload("WebSocket, 200 deltas, coalesced", "websocket", "text-200-0", stream=True),
    Workload("WebSocket, 200 deltas, 2 ms apart", "websocket", "text-200-2", stream=True),
)


def named(name: str) -> Workload:
    return next(each for each in WORKLOADS if each.name == name)


def _responses(workload: Workload) -> Json:
    match workload.part:
        case "tool":
            tool = {"type": "function", "name": TOOL, "description": "Run it", "parameters": _PARAMETERS}
            return {"input": "List the files", "tools": [tool]}
        case "schema":
            format = {"type": "json_schema", "name": "city", "schema": SCHEMA, "strict": True}
            return {"input": "Tell me of Ulm", "text": {"format": format}}
        case "codex":
            return dict(_codex(workload.size))
        case _:
            return {"input": "Tell me something"}


def _websocket(workload: Workload) -> Json:
    return {"type": "response.create", **_responses(workload)}


def _chat(workload: Workload) -> Json:
    body: Json = {"messages": [{"role": "user", "content": "Tell me something"}]}
    match workload.part:
        case "tool":
            function = {"name": TOOL, "description": "Run it", "parameters": _PARAMETERS}
            body["tools"] = [{"type": "function", "function": function}]
        case "schema":
            schema = {"name": "city", "schema": SCHEMA, "strict": True}
            body["response_format"] = {"type": "json_schema", "json_schema": schema}
        case "codex":  # as many bytes as a forwarder would have to carry
            body["messages"] = [{"role": "user", "content": "line of output\n" * (workload.size // 16)}]
    return body


def _messages(workload: Workload) -> Json:
    return {"max_tokens": 1000, "messages": [{"role": "user", "content": "Tell me something"}]}


_BODIES: Final = {"responses": _responses, "chat": _chat, "messages": _messages, "websocket": _websocket}


@cache
def _codex(size: int) -> Json:
    """Tool calls and their outputs, as in a session of that length; a short one has the session's own shape."""
    body: Json = json.loads(codex_request(size, 30 if size < 100_000 else 250))
    body.pop("store", None)
    return body
