"""What requests and answers are made of: Responses and Chat bodies, schemas, tools, and the chunks of a stream."""

from __future__ import annotations

import json
import random
from typing import Any, Final

Json = dict[str, Any]
WORDS: Final = (
    "",
    "hi",
    "Which city?",
    "é💥",
    "x" * 300,
    "```json\n{}\n```",
    "<think>hm</think>ok",
    '{"city": "Rome"}',
)
NAMES: Final = ("weather", "weather", "f", "get_time", "speak", "a.b", "x" * 70)
MODELS: Final = ("up/model", "full/gpt-4o", "deep/deepseek-v4-pro", "zhipu/glm-5", "native/gpt-4o", "native/gpt-5")
ARGUMENTS: Final = ("{}", '{"city":"Rome"}', '{"city":', "[" * 8, "]", "", "null", '"x"', '{"input": "ls"}', "}{")


def make_body(chance: random.Random, chat: bool) -> Json:
    body: Json = {"model": chance.choice(MODELS)}
    if chat:
        body["messages"] = [_message(chance) for _ in range(chance.randint(1, 5))]
        name, form = "functions" if chance.random() < 0.1 else "tools", "response_format"
        if name == "tools":
            body["tools"] = [{"type": "function", "function": _function(chance)} for _ in range(chance.randint(0, 3))]
    else:
        body["input"] = (
            chance.choice(WORDS) if chance.random() < 0.3 else [_item(chance) for _ in range(chance.randint(1, 6))]
        )
        body["tools"] = [_tool(chance) for _ in range(chance.randint(0, 3))]
        form = "text"
    if chance.random() < 0.35:
        shape = {"name": chance.choice(NAMES), "schema": schema(chance), "strict": chance.random() < 0.5}
        made = {"type": "json_schema", "json_schema": shape} if chat else {"type": "json_schema", **shape}
        body[form] = made if chat else {"format": made}
    options: Json = {
        "stream": chance.random() < 0.7,
        "temperature": chance.choice((0, 1, 5, -1, 0.3)),
        "top_p": chance.choice((0, 0.5, 2)),
        "tool_choice": chance.choice(("auto", "auto", "none", "required")),
        "reasoning": {"effort": chance.choice(("none", "low", "high"))},
        "max_output_tokens": chance.choice((16, 100, 4_000)),
        "include": ["reasoning.encrypted_content", "message.output_text.logprobs"][: chance.randint(0, 2)],
        "top_logprobs": chance.choice((0, 2, 20)),
        "metadata": {"k": "v"},
        "parallel_tool_calls": chance.random() < 0.5,
        "instructions": chance.choice(WORDS),
        "store": chance.random() < 0.8,
    }
    for name in chance.sample(sorted(options), chance.randint(1, 5)):
        body[name] = options[name]
    if chance.random() < 0.04:  # names that somebody may quote
        body[chance.choice(("model", "previous_response_id", "tool_choice", "truncation"))] = "name/" * 10_000
    return body


def _message(chance: random.Random) -> Json:
    role = chance.choice(("system", "user", "assistant", "tool", "developer", "function"))
    content: Any = chance.choice(WORDS)
    if chance.random() < 0.3:
        content = [{"type": "text", "text": content}, {"type": "image_url", "image_url": {"url": "data:,x"}}]
    message: Json = {"role": role, "content": content}
    if role == "assistant" and chance.random() < 0.5:
        function = {"name": chance.choice(NAMES), "arguments": chance.choice(ARGUMENTS)}
        message["tool_calls"] = [{"id": chance.choice("abc"), "type": "function", "function": function}]
    if role == "tool":
        message["tool_call_id"] = chance.choice("abc")
    return message


def _item(chance: random.Random) -> Json:
    id = chance.choice("abc")
    kinds: tuple[Json, ...] = (
        {"role": chance.choice(("user", "assistant", "developer")), "content": chance.choice(WORDS)},
        {"role": "user", "content": [{"type": "input_text", "text": chance.choice(WORDS)}]},
        {"role": "user", "content": [{"type": "input_image", "image_url": "data:image/png;base64,aGk="}]},
        {"role": "user", "content": [{"type": "input_file", "filename": "a", "file_data": "aGk="}]},
        {"type": "function_call", "call_id": id, "name": chance.choice(NAMES), "arguments": chance.choice(ARGUMENTS)},
        {"type": "function_call_output", "call_id": id, "output": chance.choice(WORDS)},
        {"type": "custom_tool_call", "call_id": id, "name": chance.choice(NAMES), "input": chance.choice(WORDS)},
        {"type": "custom_tool_call_output", "call_id": id, "output": chance.choice(WORDS)},
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}], "encrypted_content": "isth2.a.b"},
        {"type": "local_shell_call", "call_id": id, "action": {"type": "exec", "command": ["ls"], "env": {}}},
        {"type": "item_reference", "id": "{stored item}"},
        {"type": "compaction", "encrypted_content": "isth1.x.y"},
        {"type": "mcp_call", "name": "f", "server_label": "s", "arguments": "{}", "output": "x"},
        {"type": "web_search_call", "id": "ws_1", "status": "completed"},
    )
    return dict(chance.choice(kinds))


def _function(chance: random.Random) -> Json:
    return {
        "name": chance.choice(NAMES),
        "description": chance.choice(WORDS),
        "parameters": schema(chance),
        "strict": chance.random() < 0.5,
    }


def _tool(chance: random.Random) -> Json:
    grammar = {
        "type": "grammar",
        "syntax": chance.choice(("lark", "regex")),
        "definition": chance.choice(('start: "a" | "b"', "(a|b)*", "a{1,9}", "start: x\nx: start", "[" * 5, "")),
    }
    kinds: tuple[Json, ...] = (
        {"type": "function", **_function(chance)},
        {"type": "custom", "name": chance.choice(NAMES), "format": grammar},
        {"type": "namespace", "name": "n", "tools": [{"type": "function", **_function(chance)}]},
        {"type": "local_shell"},
        {"type": "apply_patch"},
        {"type": "web_search"},
        {"type": "mcp", "server_label": "s", "server_url": "https://x/mcp"},
    )
    return chance.choice(kinds)


def schema(chance: random.Random, depth: int = 0) -> Any:
    if depth == 0 and chance.random() < 0.15:
        return _doubling(chance.choice((3, 12, 30)))
    if depth > 3 or chance.random() < 0.3:
        leaves: tuple[Any, ...] = (
            {"type": "string", "pattern": chance.choice(("^a+$", "(a+)+$", "\\p{L}{9}", "[", "a{99}"))},
            {"type": chance.choice(("string", "integer", "number", "null", "boolean", "nonsense"))},
            {"enum": ["Rome", 1, None]},
            {"$ref": chance.choice(("#", "#/$defs/a", "#/$defs/none", "https://x/y"))},
            {},
            True,
        )
        return chance.choice(leaves)
    match chance.randrange(3):
        case 0:
            inner = {name: schema(chance, depth + 1) for name in ("city", "days", "a")[: chance.randint(1, 3)]}
            made: Json = {"type": "object", "properties": inner, "required": list(inner)}
            if depth == 0:
                made["$defs"] = {"a": schema(chance, depth + 1)}
            return made
        case 1:
            return {"type": "array", "items": schema(chance, depth + 1), "maxItems": 3}
        case _:
            word = chance.choice(("anyOf", "allOf", "oneOf", "prefixItems"))
            return {word: [schema(chance, depth + 1) for _ in range(chance.randint(1, 3))]}


def _doubling(levels: int) -> Json:
    """Each level refers twice to the one below."""
    definitions: Json = {"d0": {"type": "string"}}
    for level in range(1, levels):
        definitions[f"d{level}"] = {"allOf": [{"$ref": f"#/$defs/d{level - 1}"}] * 2}
    return {"$defs": definitions, "$ref": f"#/$defs/d{levels - 1}"}


def make_answer(chance: random.Random) -> tuple[Json | bytes, ...]:
    """The chunks of a stream, more or less as providers send them."""
    made: list[Json | bytes] = [chunk(_delta(chance)) for _ in range(chance.randint(0, 6))]
    if chance.random() < 0.9:
        made.append(chunk({}, chance.choice(("stop", "length", "tool_calls", "content_filter", "eos", "odd", None))))
    if chance.random() < 0.5:
        made.append({**chunk({}), "choices": [], "usage": _usage(chance)})
    if chance.random() < 0.1:
        made.insert(chance.randrange(len(made) + 1), make_error(chance))
    if chance.random() < 0.9:
        made.append(b"data: [DONE]\n\n")
    return tuple(made)


def make_error(chance: random.Random) -> Json:
    message = chance.choice((*WORDS, "no " * 20_000, "maximum context length", "quota"))
    return chance.choice(error_shapes(message, chance.choice(("x", None, 7, "rate_limit_exceeded"))))


def error_shapes(message: str, code: Any) -> tuple[Json, ...]:
    """The ways in which providers spell an error."""
    return (
        {"error": {"message": message, "code": code}},
        {"error": message},
        {"detail": message},
        {"message": message},
    )


def _delta(chance: random.Random) -> Json:
    function = {"name": chance.choice((*NAMES, None)), "arguments": chance.choice(ARGUMENTS)}
    call = {"index": chance.choice((0, 0, 1, 7, None)), "id": chance.choice(("c1", "c2", None)), "function": function}
    kinds: tuple[Json, ...] = (
        {"content": chance.choice(WORDS)},
        {"content": chance.choice(WORDS), "role": "assistant"},
        {"reasoning_content": chance.choice(WORDS)},
        {"reasoning_details": [{"type": "reasoning.text", "text": "hm", "index": 0, "signature": "s"}]},
        {"tool_calls": [call]},
        {"tool_calls": [call, {**call, "index": 1}]},
        {"refusal": chance.choice(WORDS)},
        {"function_call": function},
        {"annotations": [{"type": "url_citation", "url_citation": {"url": "x", "start_index": 0, "end_index": 9**9}}]},
    )
    return json.loads(json.dumps(chance.choice(kinds)))  # type: ignore[no-any-return]


def chunk(delta: Json, finish: str | None = None) -> Json:
    choice: Json = {"index": 0, "delta": delta, "finish_reason": finish}
    return {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}


def _usage(chance: random.Random) -> Any:
    count = (0, 5, 10, 1e308, -3, 2**60, 2**70, None, "7", True)
    return {
        "prompt_tokens": chance.choice(count),
        "completion_tokens": chance.choice(count),
        "total_tokens": chance.choice(count),
        "completion_tokens_details": {"reasoning_tokens": chance.choice(count)},
    }
