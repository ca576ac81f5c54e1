"""Bodies to throw at the gateway: good ones, and every way to spoil them.

Nothing here is sent: each function gives bytes. The same seed gives the same bodies.
"""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Iterator
from typing import Any, Final

Json = dict[str, Any]
Path = tuple[str | int, ...]

SCHEMA: Final[Json] = {
    "type": "object",
    "properties": {"city": {"type": "string", "enum": ["Rome", "Oslo"]}, "days": {"$ref": "#/$defs/days"}},
    "required": ["city", "days"],
    "additionalProperties": False,
    "$defs": {"days": {"type": ["integer", "null"], "minimum": 1}},
}


def good_responses(stored_id: str, item_id: str) -> list[Json]:
    """Requests that the gateway takes, with everything that the Responses API has to offer."""
    function = {"type": "function", "name": "weather", "description": "…", "parameters": SCHEMA, "strict": True}
    grammar = {"type": "grammar", "syntax": "lark", "definition": 'start: "a" | "b"'}
    user = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Which city?"}]}
    text_part = {"type": "output_text", "text": "Rome", "annotations": [], "logprobs": []}
    return [
        {"model": "up/model", "input": "Say hello", "instructions": "Be brief", "stream": True},
        {
            "model": "full/gpt-4o",
            "input": [
                {"role": "developer", "content": "Be kind"},
                user,
                {"type": "message", "role": "assistant", "id": "msg_1", "status": "completed", "content": [text_part]},
                {
                    "role": "user",
                    "content": [{"type": "input_image", "image_url": "data:image/png;base64,iVBORw0KGgo="}],
                },
                {"role": "user", "content": [{"type": "input_file", "filename": "a.txt", "file_data": "aGVsbG8="}]},
            ],
            "temperature": 0.5,
            "top_p": 0.9,
            "max_output_tokens": 100,
            "top_logprobs": 2,
            "metadata": {"a": "b"},
            "include": ["reasoning.encrypted_content"],
            "stream_options": {"include_obfuscation": False},
            "stream": True,
            "truncation": "auto",
            "user": "me",
            "prompt_cache_key": "key",
        },
        {
            "model": "deep/deepseek-v4-pro",
            "input": [
                user,
                {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "hm"}], "content": []},
                {
                    "type": "function_call",
                    "id": "fc_1",
                    "call_id": "c1",
                    "name": "weather",
                    "arguments": '{"city":"Rome"}',
                },
                {"type": "function_call_output", "call_id": "c1", "output": [{"type": "input_text", "text": "sunny"}]},
                {"type": "custom_tool_call", "call_id": "c2", "name": "speak", "input": "a"},
                {"type": "custom_tool_call_output", "call_id": "c2", "output": "said"},
                {"type": "local_shell_call", "call_id": "c3", "action": {"type": "exec", "command": ["ls"], "env": {}}},
                {"type": "local_shell_call_output", "call_id": "c3", "output": "a b"},
                {"type": "shell_call", "call_id": "c4", "action": {"commands": ["ls"], "timeout_ms": 10}},
                {
                    "type": "shell_call_output",
                    "call_id": "c4",
                    "output": [{"stdout": "a", "stderr": "", "outcome": {}}],
                },
                {"type": "apply_patch_call", "call_id": "c5", "operation": {"type": "delete_file", "path": "a"}},
                {"type": "apply_patch_call_output", "call_id": "c5", "output": "done", "status": "completed"},
            ],
            "tools": [
                function,
                {"type": "custom", "name": "speak", "format": grammar},
                {"type": "local_shell"},
                {"type": "shell"},
                {"type": "apply_patch"},
                {"type": "namespace", "name": "n", "tools": [{"type": "function", "name": "f", "parameters": {}}]},
            ],
            "tool_choice": {"type": "function", "name": "weather"},
            "parallel_tool_calls": True,
            "reasoning": {"effort": "high", "summary": "auto"},
        },
        {
            "model": "full/gpt-4o",
            "input": [{"type": "item_reference", "id": item_id}, user],
            "previous_response_id": stored_id,
            "text": {
                "format": {"type": "json_schema", "name": "trip", "schema": SCHEMA, "strict": False},
                "verbosity": "low",
            },
        },
        {
            "model": "zhipu/glm-5",
            "input": [user],
            "tools": [function, {"type": "web_search", "user_location": {"type": "approximate", "city": "Rome"}}],
            "tool_choice": {
                "type": "allowed_tools",
                "mode": "auto",
                "tools": [{"type": "function", "name": "weather"}],
            },
            "stream": True,
        },
    ]


def good_chats() -> list[Json]:
    """The same for Chat Completions."""
    tool = {"type": "function", "function": {"name": "weather", "parameters": SCHEMA, "strict": True}}
    called = {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": '{"city":"Rome"}'}}
    pixel = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo=", "detail": "low"}}
    return [
        {"model": "up/model", "messages": [{"role": "user", "content": "Say hello"}], "stream": True},
        {
            "model": "full/gpt-4o",
            "messages": [
                {"role": "system", "content": [{"type": "text", "text": "Be brief"}]},
                {"role": "user", "name": "me", "content": [{"type": "text", "text": "Which city?"}, pixel]},
                {"role": "assistant", "content": None, "tool_calls": [called]},
                {"role": "tool", "tool_call_id": "c1", "content": "sunny"},
                {"role": "user", "content": "Thanks"},
            ],
            "tools": [tool],
            "tool_choice": {"type": "function", "function": {"name": "weather"}},
            "stream": True,
            "stream_options": {"include_usage": True},
            "max_completion_tokens": 50,
            "temperature": 1,
            "n": 1,
            "stop": ["x"],
            "seed": 7,
            "logprobs": True,
            "top_logprobs": 1,
            "logit_bias": {"5": 1},
            "metadata": {"a": "b"},
            "store": True,
        },
        {
            "model": "deep/deepseek-v4-pro",
            "messages": [
                {"role": "user", "content": "Which city?"},
                {"role": "assistant", "content": "", "function_call": {"name": "weather", "arguments": "{}"}},
                {"role": "function", "name": "weather", "content": "sunny"},
            ],
            "functions": [{"name": "weather", "parameters": SCHEMA}],
            "function_call": {"name": "weather"},
            "reasoning_effort": "high",
            "response_format": {"type": "json_object"},
        },
    ]


DEEP: Final = json.loads("[" * 60 + "]" * 60)
WRONG: Final[tuple[Any, ...]] = (
    *(None, True, False, 0, -1, 1.5, 1e308, 10**30, -(2**63), 2**64),
    *("", "x", "\x00", "💥" * 50, "‮á", "a" * 5000),
    *([], [None], [[]], [1, "a", {}], {}, {"": None}, {"type": 1}, {"type": "message"}, {"a": {"b": []}}, DEEP),
)
"""Values that belong nowhere."""


def wrong_types(good: Json) -> Iterator[bytes]:
    """Every place of a good body, at every depth, with every wrong value in it; then without it."""
    for path in _paths(good):
        for value in WRONG:
            yield _encode(_with(good, path, value))
        yield _encode(_without(good, path))


def mutations(goods: list[Json], chance: random.Random) -> Iterator[bytes]:
    """Good bodies with one to five random changes, without end."""
    words = sorted({str(step) for good in goods for path in _paths(good) for step in path if isinstance(step, str)})
    kinds = sorted({str(value) for good in goods for value in _values(good) if isinstance(value, str)})
    while True:
        body = copy.deepcopy(chance.choice(goods))
        for _ in range(chance.randint(1, 5)):
            paths = list(_paths(body))
            if not paths:
                break
            path = chance.choice(paths)
            match chance.randrange(7):
                case 0:
                    body = _without(body, path)
                case 1:
                    body = _with(body, path, chance.choice(WRONG))
                case 2:
                    body = _with(body, path, _at(body, chance.choice(paths)))
                case 3:
                    body = _with(body, (*path[:-1], chance.choice(words)), chance.choice(WRONG))
                case 4:
                    body = _with(body, path, chance.choice(kinds))
                case 5:
                    body = _with(body, path, [_at(body, path)] * chance.randint(2, 4))
                case _:
                    other = chance.choice(goods)
                    name = chance.choice(list(other))
                    body = {**body, name: copy.deepcopy(other[name])}
        yield _encode(body)


def raw_bodies(goods: list[Json], chance: random.Random) -> Iterator[bytes]:
    """What is not JSON, not text, or not reasonable."""
    whole = _encode(goods[0])
    yield from (
        b"",
        b" ",
        b"null",
        b"true",
        b"[]",
        b'""',
        b"0",
        b"{",
        b"}",
        b"{}",
        b'{"input"',
        b"\xff\xfe",
        b"\xef\xbb\xbf{}",
    )
    yield from (b"\xef\xbb\xbf" + whole, whole.decode().encode("utf-16"), whole.decode().encode("utf-32"), whole + b"x")
    for text in (
        "NaN",
        "Infinity",
        "-Infinity",
        "1e999",
        "-1e999",
        "1" * 5000,
        "0." + "1" * 5000,
        "01",
        "+1",
        "1.",
        "0x1",
    ):
        for field in ("temperature", "max_output_tokens", "seed", "unknown", "metadata", "input"):
            yield f'{{"input": "x", "messages": [], "{field}": {text}}}'.encode()
    for text in (r"\ud800", r"\udc00\ud800", r"\u0000", r"\x", r"\u12", "\\", "\x01", r"\ud83d\ude00", r"￿"):
        for field in ("input", "model", "instructions", "previous_response_id", "unknown", text):
            yield f'{{"messages": [{{"role": "user", "content": "{text}"}}], "{field}": "{text}"}}'.encode()
    for depth in (10, 90, 101, 500, 3000, 100_000):
        for opening, closing in (("[", "]"), ('{"a":', "}"), ('[{"type":"object","properties":{"a":', "}}]")):
            deep = opening * depth + "1" + closing * depth
            for field in ("input", "metadata", "tools", "unknown", "text", "messages"):
                yield f'{{"input": "x", "{field}": {deep}}}'.encode()
    yield b'{"input": "a", "input": 1, "input": ["b"]}'
    yield b'{"input": "' + b"a" * 3_000_000 + b'"}'
    yield b'{"input": [' + b'{"role":"user","content":"a"},' * 20_000 + b'{"role":"user","content":"a"}]}'
    yield b'{"input": "x", ' + b",".join(b'"k%d": %d' % (n, n) for n in range(20_000)) + b"}"
    while True:
        match chance.randrange(3):
            case 0:
                yield chance.randbytes(chance.randint(1, 300))
            case 1:
                yield whole[: chance.randrange(len(whole))]
            case _:
                spoiled = bytearray(_encode(chance.choice(goods)))
                for _ in range(chance.randint(1, 4)):
                    spoiled[chance.randrange(len(spoiled))] = chance.randrange(256)
                yield bytes(spoiled)


def _encode(body: Any) -> bytes:
    return json.dumps(body).encode()


def _paths(value: Any, at: Path = ()) -> Iterator[Path]:
    steps: list[Any] = (
        list(value) if isinstance(value, dict) else list(range(len(value))) if isinstance(value, list) else []
    )
    for step in steps:
        if len(at) < 12:
            yield (*at, step)
            yield from _paths(value[step], (*at, step))


def _values(value: Any) -> Iterator[Any]:
    for path in _paths(value):
        yield _at(value, path)


def _at(body: Any, path: Path) -> Any:
    for step in path:
        body = body[step]
    return body


def _with(body: Json, path: Path, value: Any) -> Json:
    made = copy.deepcopy(body)
    holder: Any = _at(made, path[:-1])
    if isinstance(holder, list) and not isinstance(path[-1], int):
        holder.append({path[-1]: copy.deepcopy(value)})
    elif type(holder) in (dict, list):
        holder[path[-1]] = copy.deepcopy(value)
    return made


def _without(body: Json, path: Path) -> Json:
    made = copy.deepcopy(body)
    del _at(made, path[:-1])[path[-1]]
    return made
