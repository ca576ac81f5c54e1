"""What the figures of the core (`core.py`) and the guard for speed (`speed/`) are measured on.

In: nothing but the files of this repository. Out: workloads: a name, and a call that does the work and answers with the
bytes that would go on a wire. A rename in the core is followed here, and nowhere else.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import msgspec

from isthmus.bridge.dialects.chat.decode import ChatDecoder
from isthmus.bridge.doors.chat.render import ChatRenderer
from isthmus.bridge.parse import parse_request
from isthmus.bridge.plan import plan_request
from isthmus.bridge.sse import SseParser, encode_data, encode_event
from isthmus.bridge.turn import Done, Turn
from isthmus.bridge.types.plan import Plan, Target
from isthmus.providers import load_provider

ROOT: Final = Path(__file__).resolve().parent.parent
DELTAS: Final = 100
"""Deltas in one stream: what each one costs outweighs the beginning and the end."""
SHORT: Final = 20
SMALL: Final = {"model": "m", "input": "Say hello", "stream": True}

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Workload:
    name: str
    run: Callable[[], bytes]
    """Does the work once; each call begins anew and answers the same."""
    given: tuple[bytes, ...]
    """The JSON documents that go in: what plain JSON work on the same bytes is measured with."""


def workloads() -> list[Workload]:
    """Planning and the per-delta path: everything that the guard holds to its baseline."""
    return [
        planning("plan, a Codex request", (ROOT / "examples" / "codex.json").read_bytes()),
        planning("plan, a Codex request of long outputs", codex_request(60_000, 30)),
        planning("plan, small request", msgspec.json.encode(SMALL)),
        *(streaming(f"stream, {kind}", deltas(kind, DELTAS)) for kind in KINDS),
        streaming("stream, text, many deltas in one read", deltas("text", DELTAS), reads=5),
        streaming("stream, text, to a chat client", deltas("text", DELTAS), client="chat"),
        streaming("stream, one word", deltas("text", 1)),
    ]


def short_workloads() -> list[Workload]:
    """The same kinds of work in runs of at most a quarter of a millisecond: short enough to go undisturbed."""
    codex = json.loads((ROOT / "examples" / "codex.json").read_bytes())
    cut = {**codex, "input": codex["input"][:6], "tools": codex["tools"][:2]}
    return [
        planning("plan, a short Codex request", msgspec.json.encode(cut)),
        planning("plan, small request", msgspec.json.encode(SMALL)),
        *(streaming(f"stream, {kind}", deltas(kind, SHORT)) for kind in KINDS),
        streaming("stream, text, many deltas in one read", deltas("text", SHORT), reads=2),
        streaming("stream, text, to a chat client", deltas("text", SHORT), client="chat"),
        streaming("stream, one word", deltas("text", 1)),
    ]


def planning(name: str, raw: bytes) -> Workload:
    """Bytes of a request → the bytes that are sent to a chat provider."""
    target = _target()

    def run() -> bytes:
        return msgspec.json.encode(plan_request(parse_request(raw), target).body)

    return Workload(name, run, (raw,))


def streaming(name: str, given: list[Json], *, reads: int | None = None, client: str = "responses") -> Workload:
    """Bytes of a chat provider's stream → the bytes of the stream that a client gets, from its first event to its last.

    `reads` is the number of pieces in which the stream arrives; without it each delta is read alone.
    """
    plan = _stream_plan()
    data = [msgspec.json.encode(_chunk(delta)) for delta in given]
    data.append(msgspec.json.encode({**_chunk({}, "stop"), "usage": _USAGE}))
    lines = [b"data: %b\n\n" % each for each in (*data, b"[DONE]")]
    size = 1 if reads is None else -(-len(lines) // reads)
    pieces = [b"".join(lines[n : n + size]) for n in range(0, len(lines), size)]

    def run() -> bytes:
        render = _to_chat() if client == "chat" else encode_event
        parser, decoder = SseParser(), ChatDecoder(plan.reply)
        turn = Turn(plan, response_id="resp_1", now=1)
        out = [render(event) for event in turn.accepted()]
        for piece in pieces:
            for sse in parser.feed(piece):
                out += [render(event) for event in turn.feed(decoder.chunk(sse))]
        out += [render(event) for event in turn.feed(decoder.end())]
        done = turn.end(2)
        assert isinstance(done, Done)
        out += [render(event) for event in done.events]
        return b"".join(out)

    return Workload(name, run, tuple(data))


KINDS: Final = ("text", "reasoning", "function arguments", "custom tool input")


def deltas(kind: str, count: int) -> list[Json]:
    """`count` deltas of one kind, as a chat provider words them."""
    match kind:
        case "text":
            return [{"content": f"token{n} "} for n in range(count)]
        case "reasoning":
            return [{"reasoning_content": f"token{n} "} for n in range(count)]
        case "function arguments":
            return _call("f", '{"a":"', count)
        case "custom tool input":
            return _call("c", '{"input":"', count)
    raise ValueError(kind)


def _call(name: str, opening: str, count: int) -> list[Json]:
    def arguments(text: str) -> Json:
        return {"tool_calls": [{"index": 0, "function": {"arguments": text}}]}

    opened = {"tool_calls": [{"index": 0, "id": "a", "function": {"name": name, "arguments": opening}}]}
    return [opened, *(arguments(f"token{n} ") for n in range(count - 2)), arguments('"}')]


def codex_request(size: int, items: int) -> bytes:
    """A Codex request with the given number of items, filled up to about `size` bytes."""
    body = json.loads((ROOT / "examples" / "codex.json").read_text())
    head = [item for item in body["input"] if item.get("role") in ("developer", "user")][:4]
    built: list[Json] = list(head)
    base = len(json.dumps({**body, "input": head}))
    filler = max((size - base) // max(items - len(head), 1) - 220, 20)
    while len(built) < items:
        number = len(built)
        call = f"call_{number}"
        built.append(
            {"type": "function_call", "call_id": call, "name": "exec_command", "arguments": '{"cmd": "ls -la"}'}
        )
        built.append(
            {"type": "function_call_output", "call_id": call, "output": "line of output\n" * (2 * filler // 15)}
        )
    body["input"] = built[:items]
    return json.dumps(body).encode()


def _target() -> Target:
    provider = load_provider("deepseek")
    return Target("deepseek", provider.default_model, provider.capabilities())


def _stream_plan() -> Plan:
    tools = [{"type": "function", "name": "f", "parameters": {"type": "object"}}, {"type": "custom", "name": "c"}]
    return plan_request(parse_request({"model": "m", "input": "hi", "stream": True, "tools": tools}), _target())


def _to_chat() -> Callable[[Json], bytes]:
    renderer = ChatRenderer(include_usage=True)

    def render(event: Json) -> bytes:
        return b"".join(encode_data(chunk) for chunk in renderer.render(event))

    return render


_USAGE: Final = {"prompt_tokens": 10, "completion_tokens": 10, "total_tokens": 20}


def _chunk(delta: Json, finish_reason: str | None = None) -> Json:
    choice = {"index": 0, "delta": delta, "finish_reason": finish_reason}
    return {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}
