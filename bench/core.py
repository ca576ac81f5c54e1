"""CPU figures of the pure core: planning a request, and one streamed delta.

Run: `make bench`. Times are CPU time on whatever machine this is; the ratios to plain JSON work on the
same bytes, measured in the same run, are what can be compared.
"""

from __future__ import annotations

import gc
import json
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from isthmus.bridge.dialects.chat.decode import ChatDecoder
from isthmus.bridge.parse import parse_request
from isthmus.bridge.plan import plan_request
from isthmus.bridge.sse import SseParser, encode_event
from isthmus.bridge.turn import Turn
from isthmus.bridge.types.plan import Target
from isthmus.protocol.json import JsonObject
from isthmus.providers import load_provider

ROOT = Path(__file__).resolve().parent.parent


def cpu(action: Callable[[], object], *, seconds: float = 0.5) -> float:
    """Median CPU seconds of one call."""
    action()
    gc.collect()
    samples: list[float] = []
    until = time.perf_counter() + seconds
    while time.perf_counter() < until or len(samples) < 5:
        before = time.process_time()
        action()
        samples.append(time.process_time() - before)
    return sorted(samples)[len(samples) // 2]


def codex_request(size: int, items: int) -> bytes:
    """A Codex request with the given number of items, filled up to about `size` bytes."""
    body = json.loads((ROOT / "examples" / "codex.json").read_text())
    body = body.get("body", body)
    head = [item for item in body["input"] if item.get("role") in ("developer", "user")][:4]
    built: list[JsonObject] = list(head)
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


def plan_figures(label: str, raw: bytes) -> tuple[float, float]:
    provider = load_provider("deepseek")
    target = Target("deepseek", provider.default_model, provider.capabilities())

    def plan() -> bytes:
        return msgspec.json.encode(plan_request(parse_request(raw), target).body)

    def plain() -> bytes:
        return msgspec.json.encode(msgspec.json.decode(raw))

    planned, loaded = cpu(plan), cpu(plain)
    size = f"{len(raw) / 1000:.0f} kB"
    print(f"{label:<34} {size:>11} {planned * 1e3:>9.3f} ms {loaded * 1e3:>9.3f} ms {planned / loaded:>6.1f}x")
    return planned, loaded


def delta_figures(label: str, deltas: list[JsonObject]) -> float:
    provider = load_provider("deepseek")
    target = Target("deepseek", provider.default_model, provider.capabilities())
    tool = {"type": "function", "name": "f", "parameters": {"type": "object"}}
    custom = {"type": "custom", "name": "c"}
    plan = plan_request(parse_request({"model": "m", "input": "hi", "stream": True, "tools": [tool, custom]}), target)
    chunks = [
        b"data: "
        + json.dumps(
            {
                "id": "c",
                "object": "chat.completion.chunk",
                "created": 1,
                "model": "m",
                "choices": [{"index": 0, "delta": delta, "finish_reason": None}],
            }
        ).encode()
        + b"\n\n"
        for delta in deltas
    ]

    def stream() -> int:
        parser, decoder = SseParser(), ChatDecoder(plan.reply)
        turn = Turn(plan, response_id="resp_1", now=1)
        size = sum(len(encode_event(event)) for event in turn.accepted())
        for chunk in chunks:
            for sse in parser.feed(chunk):
                for event in turn.feed(decoder.chunk(sse.data)):
                    size += len(encode_event(event))
        return size

    def plain() -> int:
        return sum(len(msgspec.json.encode(msgspec.json.decode(chunk[6:]))) for chunk in chunks)

    each, loaded = cpu(stream) / len(chunks), cpu(plain) / len(chunks)
    print(f"{label:<34} {'':>11} {each * 1e6:>9.2f} µs {loaded * 1e6:>9.2f} µs {each / loaded:>6.1f}x")
    return each


def main() -> None:
    print(f"{'plan + build + encode':<34} {'request':>11} {'CPU':>12} {'JSON only':>12} {'ratio':>7}")
    small, _ = plan_figures("Codex, 10 tools, 30 items", codex_request(60_000, 30))
    large, _ = plan_figures("Codex, 10 tools, 500 items", codex_request(1_000_000, 500))
    print(f"{'500 items cost, per item, against 30':<34} {(large / 500) / (small / 30):>36.2f}x")
    print()
    print(f"{'SSE + decode + assemble + encode':<34} {'per delta':>11} {'CPU':>12} {'JSON only':>12} {'ratio':>7}")
    delta_figures("text", [{"content": f"token{n} "} for n in range(2000)])
    delta_figures("reasoning", [{"reasoning_content": f"token{n} "} for n in range(2000)])
    opened: JsonObject = {"tool_calls": [{"index": 0, "id": "a", "function": {"name": "f", "arguments": '{"a":"'}}]}
    more: list[JsonObject] = [{"tool_calls": [{"index": 0, "function": {"arguments": "word "}}]} for _ in range(2000)]
    delta_figures("function arguments", [opened, *more])
    opened = {"tool_calls": [{"index": 0, "id": "a", "function": {"name": "c", "arguments": '{"input":"'}}]}
    delta_figures("custom tool input", [opened, *more])


if __name__ == "__main__":
    main()
